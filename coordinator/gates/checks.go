package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// checks lets nobody go before all checks of the pool have passed since the last operation
// ended. What could not be asked never passes.
func checks(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, c := range m.Pool.Rolling().Checks {
		outcome, known := m.FreshCheck(c.Name)
		text := func(what string) string {
			return fmt.Sprintf("check %q of %s %s", c.Name, poolName(m.Pool), what)
		}
		switch {
		case !known:
			return &Verdict{Reason: ReasonCheckUnknown, Message: text("has not been answered since the last operation ended")}
		case outcome.State == fleet.CheckInvalid:
			return &Verdict{Reason: ReasonCheckInvalid, Message: outcome.Message}
		case outcome.State == fleet.CheckFailed:
			return &Verdict{Reason: ReasonCheckFailed, Message: text("does not pass: " + outcome.Message + "; it is asked again, and the machine goes on by itself")}
		case outcome.State != fleet.CheckPassed:
			return &Verdict{Reason: ReasonCheckUnknown, Message: text("could not be asked: " + outcome.Message + "; it is asked again")}
		}
	}
	return nil
}
