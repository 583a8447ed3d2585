package nodemarks

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/drain"
)

// Wanted are the marks that the machine's node is to carry.
func Wanted(f *fleet.Fleet, m *fleet.Machine) drain.Marks {
	marks := drain.Marks{Outdated: awaitsDrain(m) && f.HasPlaceFor(m.Node)}
	switch {
	case m.Slot == nil:
	case m.Node != nil && changesWithCordon(m.Slot):
		return m.Node.Marks
	default:
		marks.InFlight = m.Slot.GrantID
	}
	return marks
}

// changesWithCordon says that the marks are about to be written with the cordon, or with its
// end: a write of their own would only come between.
func changesWithCordon(s *v1alpha1.Slot) bool {
	return fleet.Disrupts(s.Disruption) && (s.State == v1alpha1.SlotReserved || s.State == v1alpha1.SlotVerifying)
}

// awaitsDrain says that the node is going to be drained in the rollout of its pool, and
// that pods had better go elsewhere meanwhile. While the host's plan is not known yet, a
// drain is assumed if others of the pool have one.
func awaitsDrain(m *fleet.Machine) bool {
	switch plan := fleet.FrozenPlan(m.Machine); {
	case m.Node == nil, m.Slot != nil, m.OutOfService(), m.StandsBy(), !m.DeletionTimestamp.IsZero(), !m.Outdated(), aborted(m.Pool):
		return false
	case plan != nil:
		return fleet.Disrupts(plan.Disruption)
	}
	return slices.ContainsFunc(m.Pool.Machines, drains)
}

// drains says that the machine is being drained, or is going to be.
func drains(m *fleet.Machine) bool {
	if m.Slot != nil {
		return fleet.Disrupts(m.Slot.Disruption)
	}
	return fleet.NeedsDrain(m) && !m.OutOfService() && m.DeletionTimestamp.IsZero()
}

func aborted(p *fleet.Pool) bool {
	if p.Deployment == nil {
		return false
	}
	_, is := p.Deployment.Annotations[v1alpha1.AnnotationAbort]
	return is
}
