package gates

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// A drain that was blocked is tried again later, so that one machine does not starve the others.
func retryLater(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	failure := m.Status.RolloutFailure
	if failure == nil || failure.NextRetryTime == nil || !f.Now.Before(failure.NextRetryTime.Time) {
		return nil
	}
	return &Verdict{ReasonRetryLater, fmt.Sprintf("%s; attempt %d, next at %s",
		failure.Message, failure.Attempts, failure.NextRetryTime.UTC().Format(time.RFC3339))}
}
