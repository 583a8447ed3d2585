package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vain has a controller look in vain every ten seconds until it is made to wait for longer.
func vain(w *wakes, key wakeKey) time.Time {
	now := DefaultStart
	for range slower + 2 {
		w.set(key, now.Add(10*time.Second), now)
		now, _ = w.peek()
		w.due(now)
	}
	w.set(key, now.Add(10*time.Second), now)
	return now
}

func TestWhoLooksInVainLooksLessOftenUntilSomethingChanges(t *testing.T) {
	for name, tc := range map[string]struct{ changes, looks time.Duration }{
		"before the next look": {5 * time.Second, 10 * time.Second},
		"after some":           {25 * time.Second, 30 * time.Second},
		"at the time of one":   {20 * time.Second, 30 * time.Second},
		"shortly before":       {55 * time.Second, 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var w wakes
			now := vain(&w, wakeKey{"rollout", ""})
			at, ok := w.peek()
			require.True(t, ok)
			require.Equal(t, slowest, at.Sub(now))
			w.fruitful(now.Add(tc.changes))
			at, ok = w.peek()
			require.True(t, ok)
			assert.Equal(t, tc.looks, at.Sub(now), "as if it had never been made to wait")
		})
	}
}

func TestWhatIsRenewedIsNeverHopelessAndNeverSlow(t *testing.T) {
	var w wakes
	soaking, vainly := wakeKey{"machine", "w1"}, wakeKey{"machine", "w2"}
	now := DefaultStart
	for range 10 * patience {
		w.renew(soaking)
		w.set(soaking, now.Add(10*time.Second), now)
		if _, waits := w.at[vainly]; !waits {
			w.set(vainly, now.Add(10*time.Second), now)
		}
		at, ok := w.peek()
		require.True(t, ok)
		require.Equal(t, 10*time.Second, at.Sub(now))
		now = at
		w.due(now)
	}
	w.renew(soaking)
	w.set(soaking, now.Add(10*time.Second), now)
	assert.False(t, w.hopeless())
	w.drop(soaking)
	assert.True(t, w.hopeless())
}
