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
	key, words := b.Spec.TopologyKey, wordsOf(away)
	switch allowed, elsewhere := AllowedUnavailable(b, covered.Len()), outside(away, key, m.Domain(key)); {
	case len(elsewhere) > 0:
		words = wordsOf(elsewhere)
		return &Verdict{Reason: ReasonBudgetExhausted, Moment: words.Moment,
			Message: fmt.Sprintf("MachineDisruptionBudget %s: machines are unavailable in another %s%s", b.Name, key, words.Lasting)}
	case len(away) >= allowed:
		return &Verdict{Reason: ReasonBudgetExhausted, Moment: words.Moment,
			Message: fmt.Sprintf("MachineDisruptionBudget %s: %d of %s may be unavailable, and none is left%s",
				b.Name, allowed, status.Count(covered.Len(), "machine"), words.Lasting)}
	}
	return nil
}

// outside are those in other domains than this one.
func outside(machines []*fleet.Machine, key, domain string) (out []*fleet.Machine) {
	for _, m := range machines {
		if key != "" && m.Domain(key) != domain {
			out = append(out, m)
		}
	}
	return out
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
