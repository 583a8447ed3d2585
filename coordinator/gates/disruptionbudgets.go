package gates

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	covered, err := Covered(f, b)
	if err != nil {
		return &Verdict{ReasonBudgetExhausted, fmt.Sprintf("MachineDisruptionBudget %s cannot be read: %v", b.Name, err)}
	}
	in := false
	var away []string
	domain, elsewhere := m.Domain(b.Spec.TopologyKey), ""
	for _, other := range covered {
		if other == m {
			in = true
			continue
		}
		why := other.Unavailable()
		if why == "" {
			continue
		}
		away = append(away, other.Name+" "+why)
		if b.Spec.TopologyKey != "" && other.Domain(b.Spec.TopologyKey) != domain {
			elsewhere = other.Name
		}
	}
	switch allowed := AllowedUnavailable(b, len(covered)); {
	case !in:
		return nil
	case elsewhere != "":
		return &Verdict{ReasonBudgetExhausted, fmt.Sprintf("MachineDisruptionBudget %s: %s is unavailable in another %s", b.Name, elsewhere, b.Spec.TopologyKey)}
	case len(away) >= allowed:
		return &Verdict{ReasonBudgetExhausted, fmt.Sprintf("MachineDisruptionBudget %s: %d of %s may be unavailable, and none is left: %s",
			b.Name, allowed, status.Count(len(covered), "machine"), listed(away))}
	}
	return nil
}

// Covered are the machines that the budget counts: those that stand by are neither
// available nor missed.
func Covered(f *fleet.Fleet, b *v1alpha1.MachineDisruptionBudget) ([]*fleet.Machine, error) {
	sel, err := metav1.LabelSelectorAsSelector(&b.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("parsing its selector: %w", err)
	}
	var covered []*fleet.Machine
	for _, m := range f.Machines {
		if !m.OutOfService() && !m.StandsBy() && sel.Matches(labels.Set(m.Labels)) {
			covered = append(covered, m)
		}
	}
	return covered, nil
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
