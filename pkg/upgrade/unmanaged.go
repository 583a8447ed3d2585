package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// controlPlaneLabels are those that kubeadm puts on the Nodes of a control plane, now and before v1.24.
var controlPlaneLabels = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// ControlPlaneNode says whether a Node is labelled as one of a control plane.
func ControlPlaneNode(labels map[string]string) bool {
	for _, label := range controlPlaneLabels {
		if _, ok := labels[label]; ok {
			return true
		}
	}
	return false
}

// Unmanaged is the state of a Node without a Machine: it counts for skew and is never
// moved. The API server of one that is a control plane has a version that nobody reports;
// the planner says so rather than guess.
func Unmanaged(name string, node NodeState) HostState {
	h := HostState{
		Name: name, Roles: []v1alpha1.Role{v1alpha1.RoleWorker}, NotReady: node.NotReady,
		Versions: v1alpha1.ObservedVersions{Kubelet: node.Kubelet},
	}
	if ControlPlaneNode(node.Labels) {
		h.Roles, h.APIServer = []v1alpha1.Role{v1alpha1.RoleControlPlane}, APIServerByLabel
	}
	return h
}
