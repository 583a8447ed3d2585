package rollout

import (
	"github.com/refit-dev/refit/coordinator/checks"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
)

// Checker asks the checks of the pools.
type Checker interface {
	// Known is the last answer.
	Known(q checks.Question) (fleet.CheckOutcome, bool)
	// Ask has questions answered, and returns at once.
	Ask(all []checks.Question)
}

// mostWaiting machines of a namespace have their checks asked at a time: those that are next.
const mostWaiting = 16

// recallChecks puts down on the machines what is known of their checks.
func (r *Reconciler) recallChecks(f *fleet.Fleet) {
	for _, m := range f.Machines {
		all := m.Pool.Rolling().Checks
		if len(all) == 0 || !order.Ready(m) {
			continue
		}
		m.Checks = make(map[string]fleet.CheckOutcome, len(all))
		for _, c := range all {
			if o, known := r.Checks.Known(checks.Question{Check: c, Machine: m}); known {
				m.Checks[c.Name] = o
			}
		}
	}
}

// askChecks asks for those machines that nothing else holds.
func (r *Reconciler) askChecks(f *fleet.Fleet, verdicts map[string]gates.Verdict) {
	var questions []checks.Question
	left := mostWaiting
	for _, m := range order.Candidates(f) {
		if reason := verdicts[m.Name].Reason; reason != gates.ReasonCheckFailed && reason != gates.ReasonCheckUnknown {
			continue
		}
		if left == 0 {
			break
		}
		left--
		for _, c := range m.Pool.Rolling().Checks {
			questions = append(questions, checks.Question{Check: c, Machine: m})
		}
	}
	if len(questions) > 0 {
		r.Checks.Ask(questions)
	}
}
