package gates

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// A drain that was blocked is tried again later, so that one machine does not starve the
// others. The message begins with why it was, since the gate's own reason does not say.
func retryLater(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	failure := m.Status.RolloutFailure
	if failure == nil || failure.NextRetryTime == nil || !f.Now.Before(failure.NextRetryTime.Time) {
		return nil
	}
	return &Verdict{Reason: ReasonRetryLater, Message: fmt.Sprintf("%s: %s; attempt %d, next at %s",
		failure.Reason, failure.Message, failure.Attempts, failure.NextRetryTime.UTC().Format(time.RFC3339))}
}

// Cause is the reason behind a verdict's: for a drain that is tried again later, why it was blocked.
func Cause(reason string, m *v1alpha1.Machine) string {
	if f := m.Status.RolloutFailure; reason == ReasonRetryLater && f != nil && f.Reason != "" {
		return f.Reason
	}
	return reason
}
