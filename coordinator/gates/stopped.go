package gates

import "github.com/refit-dev/refit/coordinator/fleet"

func stopped(f *fleet.Fleet, _ *fleet.Machine) *Verdict {
	if !f.Stopped {
		return nil
	}
	return &Verdict{Reason: ReasonStopped, Message: "the stop switch of this namespace halts every grant: clear spec.stopped of Ledger refit to go on"}
}
