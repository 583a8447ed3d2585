package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func failureThreshold(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	var failed []string
	for _, other := range m.Pool.Machines {
		if upgrade.Failed(other.Machine) {
			failed = append(failed, fmt.Sprintf("%s (%s)", other.Name, other.Status.RolloutFailure.Reason))
		}
	}
	if len(failed) < m.Pool.FailureThreshold() {
		return nil
	}
	return &Verdict{ReasonFailureThreshold, fmt.Sprintf(
		"the rollout paused itself after %d failed: %s; change the spec, or set annotation refit.dev/retry on the machine to a new value",
		len(failed), strings.Join(failed, ", "))}
}
