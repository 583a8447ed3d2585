package watch

import (
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Backoff spaces attempts that fail: doubled each time up to Max, each with jitter,
// and never sooner than the API server asks for.
type Backoff struct {
	// First is the delay after the first failure.
	First time.Duration
	// Max bounds the delay.
	Max time.Duration

	failures int
}

// Next is how long to wait after one more failure with err.
func (b *Backoff) Next(err error) time.Duration {
	delay := b.Max
	if b.failures < 20 {
		delay = min(b.Max, b.First<<b.failures)
	}
	b.failures++
	delay = jitter(delay)
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		// On top of what was asked, so that those who were told the same do not come at once.
		delay += time.Duration(seconds) * time.Second
	}
	return delay
}

// Failures since the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset after a success.
func (b *Backoff) Reset() { b.failures = 0 }

// jitter is a random time between half and one and a half of d.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1)
}
