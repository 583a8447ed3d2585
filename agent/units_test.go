package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/refit-dev/refit/pkg/upgrade"
)

func idle() *Agent {
	a := New(Deps{})
	a.learn(upgrade.Facts{}, nil)
	a.probing.looked = a.now().Add(-time.Hour)
	return a
}

func TestARestartIsLookedAtOnceItHasSettled(t *testing.T) {
	a := idle()
	assert.Greater(t, a.probing.due.Sub(a.now()), 20*time.Minute)
	a.noteUnit()
	assert.InDelta(t, a.Timing.Settle, a.probing.due.Sub(a.now()), float64(time.Second))
	due := a.probing.due
	a.noteUnit()
	assert.Equal(t, due, a.probing.due, "the signals of one restart are one look")
}

func TestARestartDuringALookIsNotLost(t *testing.T) {
	a := idle()
	a.probing.running = true
	a.noteUnit()
	a.probing.running = false
	a.learn(upgrade.Facts{}, nil)
	assert.Less(t, a.probing.due.Sub(a.now()), time.Minute)
	assert.False(t, a.probing.missed)
}

func TestAUnitThatFailsForeverIsLookedAtEverMoreRarely(t *testing.T) {
	a := idle()
	var pauses []time.Duration
	for range 12 {
		a.noteUnit()
		pauses = append(pauses, a.probing.due.Sub(a.now()))
		a.learn(upgrade.Facts{}, nil) // as if it had been looked at
	}
	for i := 1; i < len(pauses); i++ {
		assert.GreaterOrEqual(t, pauses[i]+time.Second, pauses[i-1])
	}
	assert.InDelta(t, a.Timing.RetryMax, pauses[11], float64(time.Second))

	a.probing.units.last = a.now().Add(-2 * calm)
	a.probing.looked = a.now().Add(-2 * calm)
	a.noteUnit()
	assert.Less(t, a.probing.due.Sub(a.now()), time.Minute, "a calm one is looked at soon again")
}

func TestWhatTheExecutorRestartsIsItsOwnAffair(t *testing.T) {
	a := idle()
	due := a.probing.due
	a.work.op = &upgrade.Operation{ID: "g1"}
	a.noteUnit()
	assert.Equal(t, due, a.probing.due)
}
