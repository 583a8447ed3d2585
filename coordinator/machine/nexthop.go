package machine

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// nextAssignment asks the planner for the next hop of one machine. Nothing to do while
// the wish is not met is a refusal as well: the difference is one that no hop can close.
func nextAssignment(all upgrade.Fleet, m *v1alpha1.Machine) (*v1alpha1.Assignment, *upgrade.Blocked) {
	host := fleet.HostState(m)
	target, role, skew, blocked := upgrade.NextTarget(all, host, host.Wish)
	if blocked != nil {
		return nil, blocked
	}
	if isEmpty(target) {
		_, reason, message := upgrade.UpToDate(m.Spec, m.Status)
		return nil, &upgrade.Blocked{Reason: reason, Message: message}
	}
	a := &v1alpha1.Assignment{Generation: m.Generation, Type: v1alpha1.OperationUpgrade, Target: target, KubeadmRole: role}
	if skew != (v1alpha1.Skew{}) {
		a.Skew = &skew
	}
	return a, nil
}

func isEmpty(t v1alpha1.Target) bool {
	return t.Kubelet == "" && t.ControlPlane == "" && t.Etcd == "" && t.ContainerRuntime == nil && !t.OS
}
