package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

func TestADrainThatTimeDoesNotHelpIsNotTriedAgainEveryMinute(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	passing := &drain.Blocked{Reason: drain.ReasonEvictionBlocked}
	lasting := &drain.Blocked{Reason: drain.ReasonEvictionBlocked, Permanent: true}
	refused := &drain.Blocked{Reason: drain.ReasonPDBOverlap, Permanent: true}
	after := func(before *v1alpha1.RolloutFailure, b *drain.Blocked) time.Duration {
		return nextDrainFailure(before, b, now).NextRetryTime.Sub(now)
	}
	assert.Equal(t, time.Minute, after(nil, passing))
	assert.Equal(t, 2*time.Minute, after(nextDrainFailure(nil, passing, now), passing))
	assert.Equal(t, 30*time.Minute, after(nil, lasting))
	assert.Equal(t, time.Minute, after(nil, refused), "it evicts nobody, and costs nothing")
}
