package gates

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// degraded stops a pool while as many of its machines have gone down beside the rollout as
// it bears failures. Work on one of them takes nothing more away, and may bring it back.
func degraded(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	var down []string
	for _, other := range m.Pool.WentDown() {
		if other == m {
			return nil
		}
		down = append(down, fmt.Sprintf("%s (not ready since %s)", other.Name, other.Node.NotReadySince.UTC().Format(time.RFC3339)))
	}
	if len(down) == 0 || len(down) < m.Pool.FailureThreshold() {
		return nil
	}
	return &Verdict{Reason: ReasonFleetDegraded, Message: fmt.Sprintf(
		"machines of %s that are not worked on went down while others were: %s; it goes on by itself when they are back, or OutOfService", poolName(m.Pool), listed(down))}
}
