package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// RoleContradiction says how roles contradict what runs on a host; "" when they do not,
// or when the host could not be looked at.
func RoleContradiction(roles []v1alpha1.Role, f *Facts) string {
	unread := slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Field == "containers" })
	if slices.Contains(roles, v1alpha1.RoleControlPlane) && f.APIServerSign() == NoAPIServer && !unread {
		return "ControlPlane is not what this host is: its facts have no controlPlane, since no static pod manifest of an API server was found; correct spec.roles, or set the host up with kubeadm first"
	}
	return ""
}

// roleMissing is what a host is told whose control plane its roles do not name: its order,
// its drain and its gates are decided by the role.
const roleMissing = "this host runs an API server, but spec.roles has no ControlPlane: add it, so that the host is upgraded in its order and with its limits"

// missesRole says that a machine runs a control plane that its roles do not name.
func missesRole(roles []v1alpha1.Role, sign APIServerSign) bool {
	return len(roles) > 0 && !slices.Contains(roles, v1alpha1.RoleControlPlane) && sign == APIServerOnHost
}

// RoleMismatch refuses a machine whose control plane its roles do not name, whether
// anything is wished for or not; nil where they do.
func (h HostState) RoleMismatch() *Blocked {
	switch {
	case !h.Managed:
		return nil
	case missesRole(h.Roles, h.APIServer):
		return refuse(ReasonRoleMismatch, "%s runs an API server, but its spec.roles has no ControlPlane: add it, so that it is upgraded in its order and with its limits", h.Name)
	case h.APIServer == APIServerByLabel:
		return refuse(ReasonRoleMismatch, "Node %s is labelled as one of a control plane, but spec.roles of its Machine has no ControlPlane: add it, so that the host is upgraded in its order and with its limits; if no API server runs there, take the label off the Node", h.Name)
	}
	return nil
}
