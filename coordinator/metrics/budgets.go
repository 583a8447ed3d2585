package metrics

import (
	"github.com/refit-dev/refit/coordinator/gates"
)

// Kinds of budgets.
const (
	kindPool   = "MachineDeployment"
	kindBudget = "MachineDisruptionBudget"
)

// budgets are counted as the gates count them.
func (s *sample) budgets() {
	for name, p := range s.fleet.Pools {
		if p.Deployment != nil {
			s.emit(budgetUnavailable, len(p.Tally().AwayBut(nil)), kindPool, name)
			s.emit(budgetAllowed, p.MaxUnavailable(), kindPool, name)
		}
	}
	for _, b := range s.fleet.Budgets {
		covered, err := s.fleet.Covered(b)
		if err != nil {
			continue // its condition says so; it holds everybody
		}
		s.emit(budgetUnavailable, len(covered.AwayBut(nil)), kindBudget, b.Name)
		s.emit(budgetAllowed, gates.AllowedUnavailable(b, covered.Len()), kindBudget, b.Name)
	}
}
