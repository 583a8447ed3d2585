package gates

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// mostAway is how many names a budget's status has: it has to stay small in a large fleet.
const mostAway = 10

// BudgetStatuses are what the MachineDisruptionBudgets allow on this reading, slots that were
// given on it included, by name.
func BudgetStatuses(f *fleet.Fleet) map[string]v1alpha1.MachineDisruptionBudgetStatus {
	if len(f.Budgets) == 0 {
		return nil
	}
	out := make(map[string]v1alpha1.MachineDisruptionBudgetStatus, len(f.Budgets))
	for _, b := range f.Budgets {
		out[b.Name] = budgetStatus(f, b)
	}
	return out
}

// budgetStatus counts as the gate does. A budget that cannot be read lets nobody go.
func budgetStatus(f *fleet.Fleet, b *v1alpha1.MachineDisruptionBudget) v1alpha1.MachineDisruptionBudgetStatus {
	st := v1alpha1.MachineDisruptionBudgetStatus{ObservedGeneration: b.Generation}
	covered, err := f.Covered(b)
	if err != nil {
		return st
	}
	names := namesOf(covered.AwayBut(nil))
	slices.Sort(names)
	st.Machines, st.Unavailable = count32(covered.Len()), count32(len(names))
	st.UnavailableMachines = names[:min(len(names), mostAway):min(len(names), mostAway)]
	st.DisruptionsAllowed = count32(max(AllowedUnavailable(b, covered.Len())-len(names), 0))
	return st
}

func count32(n int) int32 { return int32(min(n, 1<<31-1)) } //nolint:gosec // bounded
