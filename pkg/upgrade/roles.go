package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// RoleContradiction says how roles contradict what runs on a host; "" when they do not,
// or when the host could not be looked at.
func RoleContradiction(roles []v1alpha1.Role, f *Facts) string {
	unread := slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Field == "controlPlane" || p.Field == "containers" })
	if slices.Contains(roles, v1alpha1.RoleControlPlane) && f.Control == nil && !unread {
		return "ControlPlane is not what this host is: its facts have no controlPlane, since no static pod manifests were found; correct spec.roles, or set the host up with kubeadm first"
	}
	return ""
}

// roleMissing is what a host is told whose control plane its roles do not name: its order,
// its drain and its gates are decided by the role.
const roleMissing = "this host runs an API server, but spec.roles has no ControlPlane: add it, so that the host is upgraded in its order and with its limits"

// missesRole says that a machine runs a control plane that its roles do not name.
func missesRole(roles []v1alpha1.Role, seen *v1alpha1.ObservedControlPlane) bool {
	return len(roles) > 0 && !slices.Contains(roles, v1alpha1.RoleControlPlane) && runsControlPlane(seen)
}

// runsControlPlane says that there is an API server, even one that does not say its
// version. A host with etcd alone reports every component as unknown.
func runsControlPlane(c *v1alpha1.ObservedControlPlane) bool {
	return c != nil && slices.ContainsFunc([]string{c.APIServer, c.ControllerManager, c.Scheduler}, func(text string) bool {
		_, ok := ParseKubernetes(text)
		return ok
	})
}
