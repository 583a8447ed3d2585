package gates

import (
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// A rollout setting that this version does not carry out must not be ignored.
func strategy(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if blocked := upgrade.UnsupportedStrategy(m.Pool.Deployment); blocked != nil {
		return &Verdict{ReasonStrategyNotSupported, blocked.Message}
	}
	return nil
}
