package gates

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Members of the control plane and of etcd go one at a time, and none goes while
// another one is away: quorum is not ours to spend. No object can widen this. Workers
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
			return &Verdict{ReasonControlPlaneBusy, fmt.Sprintf("control-plane machine %s is being worked on: it comes first, and alone", other.Name)}
		}
		if !member {
			continue
		}
		if why := memberAway(other); why != "" {
			return &Verdict{ReasonControlPlaneUnavailable, fmt.Sprintf("control-plane machine %s is away (%s): bring it back first", other.Name, why)}
		}
	}
	return nil
}

func isMember(m *fleet.Machine) bool {
	return m.HasRole(v1alpha1.RoleControlPlane) || m.HasRole(v1alpha1.RoleEtcd)
}

// A cordon does not take a member away; a node that is not ready may have.
func memberAway(m *fleet.Machine) string {
	switch {
	case m.Node != nil && !m.Node.Ready:
		return "NotReady"
	case m.Node == nil && m.HasRole(v1alpha1.RoleControlPlane):
		return "no Node"
	}
	return ""
}
