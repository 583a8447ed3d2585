package fault

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// The whole host is on an ext4 of its own, whose power is cut while the executor is held
// at an end of a write of its journal: whatever was not synced, by anybody, is gone. The
// next boot replays the filesystem's log, and refit-resume goes on. The host ends at the
// new versions or at the old ones, as its record says.
func TestAHostThatLosesItsPowerEndsInOneOfTheTwoStates(t *testing.T) {
	m := realHost(t)
	if power == nil || !exhaustive() {
		t.Skip("set REFIT_EXHAUSTIVE=1, where a disk can be mounted from a file")
	}
	states := map[versions]state{before: m.look()}
	require.NoError(t, states[before].at(before))
	from, to := before, after
	for _, at := range powerTargets() {
		struck := false
		where := ""
		plan := window(t, from, to)
		m.stage(plan)
		id := fmt.Sprint("power-", at)
		m.submit(upgrade.Operation{ID: id, Machine: m.Name(), Plan: plan})
		m.sh(fmt.Sprintf("sync %[1]s/operations/%[2]s.json %[1]s/operations %[1]s", stateDir, id)) // as the agent writes it
		g := m.guard(func(e end) {
			if e.n == at && !struck {
				struck, where = true, e.String()
				assert.NoError(t, m.losePower())
			}
		})
		m.start(id)
		rec := m.follow(id)
		g.open()
		require.True(t, struck, "end %d was reached", at)
		// The CNI library of the runtime does not sync what it remembers of a sandbox: an empty file of it keeps the pod from
		// being made again for ever, whoever cuts the power. That is not what is looked at here.
		m.sh("find /var/lib/cni/results -type f -empty -delete")
		got := m.look()
		t.Logf("power lost %s: %s %s", where, rec.State, rec.Message)
		if rec.State == journal.Successful {
			from, to = to, from
		} else {
			require.True(t, rec.RolledBack || rec.NextRollback() == 0, rec.Message)
			require.NotEmpty(t, rec.Reason)
		}
		require.NoError(t, got.at(from), where) // where it is now is where the next window starts
		if known, seen := states[from]; seen {
			require.Equal(t, known.packages, got.packages, where)
			require.Equal(t, known.holds, got.holds, where)
		}
		states[from] = got
	}
	if from != before {
		m.run("power-home", from, to, nil)
	}
}

// The control: were what is not synced still there, the test above would show nothing.
func TestWhatWasNotSyncedIsGoneAfterALossOfPower(t *testing.T) {
	m := realHost(t)
	if power == nil || !exhaustive() {
		t.Skip("set REFIT_EXHAUSTIVE=1, where a disk can be mounted from a file")
	}
	m.guard(nil)
	m.sh("echo kept >/var/lib/synced; sync /var/lib/synced /var/lib; echo lost >/var/lib/not-synced")
	require.NoError(t, m.losePower())
	m.dead.Store(false)
	require.NoError(t, errors.Join(m.plugIn(), m.Start(m.ctx)))
	assert.Equal(t, "kept\n", m.sh("cat /var/lib/synced"))
	out, _ := m.ask("cat /var/lib/not-synced")
	assert.Empty(t, out)
}

// powerTargets are the ends of writes at which the power is cut: between the steps, so
// that each step's own effects are at stake once.
func powerTargets() []int {
	var at []int
	for n := 3; n < 74; n += 2 {
		at = append(at, n)
	}
	return at
}
