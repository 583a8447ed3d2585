package gates

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// disruptionBudgets asks every MachineDisruptionBudget that selects the machine.
func disruptionBudgets(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	plan := fleet.FrozenPlan(m.Machine)
	if plan == nil || !fleet.Disrupts(plan.Disruption) || m.Down() != "" || m.StandsBy() {
		return nil
	}
	return budgetsAllow(f, m)
}

func budgetsAllow(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, b := range f.Budgets {
		if v := judgeBudget(f, m, b); v != nil {
			return v
		}
	}
	return nil
}

func judgeBudget(f *fleet.Fleet, m *fleet.Machine, b *v1alpha1.MachineDisruptionBudget) *Verdict {
	covered, err := f.Covered(b)
	if err != nil {
		return &Verdict{Reason: ReasonBudgetExhausted, Message: fmt.Sprintf("MachineDisruptionBudget %s cannot be read: %v", b.Name, err)}
	}
	if !covered.Has(m) {
		return nil
	}
	away := covered.AwayBut(m)
	domain, elsewhere := m.Domain(b.Spec.TopologyKey), ""
	for _, other := range away {
		if b.Spec.TopologyKey != "" && other.Domain(b.Spec.TopologyKey) != domain {
			elsewhere = other.Name
		}
	}
	switch allowed := AllowedUnavailable(b, covered.Len()); {
	case elsewhere != "":
		return &Verdict{Reason: ReasonBudgetExhausted, Message: fmt.Sprintf("MachineDisruptionBudget %s: machines are unavailable in another %s", b.Name, b.Spec.TopologyKey), Moment: elsewhere}
	case len(away) >= allowed:
		return &Verdict{Reason: ReasonBudgetExhausted, Message: fmt.Sprintf("MachineDisruptionBudget %s: %d of %s may be unavailable, and none is left",
			b.Name, allowed, status.Count(covered.Len(), "machine")), Moment: listed(whyAway(away))}
	}
	return nil
}

// AllowedUnavailable of total machines. A percentage of minAvailable is rounded up, one of maxUnavailable down.
func AllowedUnavailable(b *v1alpha1.MachineDisruptionBudget, total int) int {
	switch {
	case b.Spec.MaxUnavailable != nil:
		return fleet.Scaled(*b.Spec.MaxUnavailable, total, 0)
	case b.Spec.MinAvailable != nil:
		return max(total-fleet.ScaledUp(*b.Spec.MinAvailable, total), 0)
	}
	return 0
}
