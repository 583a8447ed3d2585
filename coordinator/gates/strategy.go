package gates

import (
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Invalid says what of a pool's strategy can never be carried out as it is written, and
// only another spec puts right.
func Invalid(p *fleet.Pool) *Verdict {
	if !p.HasWindows() {
		return nil
	}
	if _, err := p.Hours(); err != nil {
		return &Verdict{Reason: ReasonWindowInvalid, Message: err.Error()}
	}
	return nil
}

// A rollout setting that this version does not carry out must not be ignored.
func strategy(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if blocked := upgrade.UnsupportedStrategy(m.Pool.Deployment); blocked != nil {
		return &Verdict{Reason: ReasonStrategyNotSupported, Message: blocked.Message}
	}
	return nil
}
