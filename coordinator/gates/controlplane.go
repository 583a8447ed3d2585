package gates

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// Members of the control plane and of etcd go one at a time, and none goes while
// another one is lost: quorum is not ours to spend. No object can widen this. Workers
// are not drained meanwhile: evictions need the API servers.
func controlPlaneOneByOne(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	member, plan := isMember(m), fleet.FrozenPlan(m.Machine)
	if !member && (plan == nil || !fleet.Disrupts(plan.Disruption)) {
		return nil
	}
	for _, other := range f.Members() {
		if other == m {
			continue
		}
		if other.Slot != nil {
			return &Verdict{Reason: ReasonControlPlaneBusy, Message: fmt.Sprintf("control-plane machine %s is being worked on: it comes first, and alone", other.Name)}
		}
		if !member {
			continue
		}
		if why := memberLost(other, m); why != "" {
			return &Verdict{Reason: ReasonControlPlaneUnavailable, Message: fmt.Sprintf("control-plane machine %s %s", other.Name, why)}
		}
	}
	return nil
}

func isMember(m *fleet.Machine) bool {
	return m.HasRole(v1alpha1.RoleControlPlane) || m.HasRole(v1alpha1.RoleEtcd)
}

// memberLost says why nobody may count on a member while another one goes, and what to do
// about it. One that was left halfway is tried again before any other goes; of several such,
// each may be the first to be put right. OutOfService says that a person has the machine in
// hand, but a node that is away takes a vote with it whatever is said.
func memberLost(other, m *fleet.Machine) string {
	switch {
	case other.Node != nil && !other.Node.Ready:
		return "is away (NotReady): bring it back first"
	case other.Node == nil && other.HasRole(v1alpha1.RoleControlPlane):
		return "is away (no Node): bring it back first"
	case other.OutOfService():
		return ""
	case other.Silent():
		return "counts as lost (its agent has said nothing for five minutes): bring the host or its agent back first, or set it to OutOfService"
	case other.Node.ForeignCordon():
		return "counts as lost (cordoned by someone else): uncordon it first, or set it to OutOfService"
	case other.Halfway() && !m.Halfway():
		return "counts as lost (its last operation failed halfway): it is put right first, by hand or by another try: " + status.RetryCommand(other.Name)
	}
	return ""
}
