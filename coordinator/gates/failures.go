package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
)

func failureThreshold(_ *fleet.Fleet, m *fleet.Machine) *Verdict { return Halted(m.Pool) }

// Halted says why the rollout of a pool has paused itself; nil when it has not.
func Halted(p *fleet.Pool) *Verdict {
	const then = "; see to them, then change the spec, or set annotation refit.dev/retry on the machine to a new value"
	if failed := p.Failures(); len(failed) >= p.FailureThreshold() {
		names := make([]string, 0, len(failed))
		for _, f := range failed {
			names = append(names, fmt.Sprintf("%s (%s)", f.Machine, f.Reason))
		}
		return &Verdict{Reason: ReasonFailureThreshold, Message: fmt.Sprintf("the rollout paused itself after %d failed: %s%s", len(failed), listed(names), then)}
	}
	if unwell := p.UnhealthyInARow(); len(unwell) > 0 {
		return &Verdict{Reason: ReasonFailureThreshold, Message: fmt.Sprintf("the rollout paused itself after two machines in a row did not get well: %s%s", strings.Join(unwell, ", "), then)}
	}
	return nil
}
