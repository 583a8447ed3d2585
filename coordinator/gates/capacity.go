package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// capacity refuses to drain the only node that pods could run on, unless the policy
// says that this may happen in place.
func capacity(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	plan := fleet.FrozenPlan(m.Machine)
	if plan == nil || !fleet.Disrupts(plan.Disruption) || m.Down() != "" || m.StandsBy() {
		return nil
	}
	return placeElsewhere(f, m)
}

func placeElsewhere(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	if m.Node == nil {
		return nil
	}
	if d := m.Spec.Drain; d != nil && d.SingleNode == "InPlace" {
		return nil
	}
	if f.HasPlaceFor(m.Node) {
		return nil
	}
	return &Verdict{Reason: ReasonNoCapacity, Message: fmt.Sprintf(
		"no other node is ready, schedulable and without taints of its own, so the pods of %s would have no place: add or uncordon a node, or set spec.drain.singleNode to InPlace", m.Name)}
}
