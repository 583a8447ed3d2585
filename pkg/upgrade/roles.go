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
