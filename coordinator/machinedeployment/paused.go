package machinedeployment

import (
	"github.com/refit-dev/refit/coordinator/gates"
)

// paused is why none of the pool's machines is begun, where somebody has said so or the
// rollout has paused itself; a person's word is told first. A pool that is done has nothing to pause for
// but a person's word.
func paused(s *scope) string {
	st := &s.deployment.Status
	switch {
	case s.fleet.Stopped:
		return gates.ReasonStopped
	case s.deployment.Spec.Paused:
		reason, _ := pausedText(s.deployment)
		return reason
	case st.UpToDate == st.Machines:
		return ""
	}
	if v := gates.Halted(s.pool); v != nil {
		return v.Reason
	}
	if gates.CanaryHalts(s.pool) {
		return gates.ReasonCanaryFailed
	}
	return ""
}
