package fault

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// The host goes to the new versions and back, again and again, by the same plan. Each
// time the executor, or the whole host, is killed at another end of a write of the
// journal. Nobody does anything by hand, and the host is as after a run without a fault.
//
// Every end of every write is a matter of an hour and `make e2e`'s.
func TestAHostEndsAsPlannedWhereverItsExecutorOrItselfIsKilled(t *testing.T) {
	m := realHost(t)
	clean := map[versions]state{}
	ends := 0
	from, to := before, after
	for _, way := range []string{"there", "back"} { // without a fault
		ends = m.run("clean-"+way, from, to, nil)
		clean[to] = m.look()
		require.NoError(t, clean[to].at(to))
		from, to = to, from
	}
	require.Greater(t, ends, 2*2*17, "two writes for each step, with two ends each")
	t.Logf("a window has %d ends of writes", ends)

	for name, kill := range map[string]func(end){
		"executor": func(e end) { assert.NoError(t, syscall.Kill(e.pid, syscall.SIGKILL)) },
		"host":     func(end) { assert.NoError(t, m.die()) },
	} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			for i, targets := range targetsOf(name, ends) {
				struck := 0
				_, rebooted := m.attempt(fmt.Sprintf("%s-%d", name, i), from, to, func(e end) {
					if struck < len(targets) && e.n >= targets[struck] {
						struck++
						t.Logf("%s killed %s", name, e)
						kill(e)
					}
				})
				require.Len(t, targets, struck, "each of them was reached")
				if rebooted {
					require.Equal(t, clean[from], m.look(), "%s killed at ends %v", name, targets)
					continue
				}
				require.Equal(t, clean[to], m.look(), "%s killed at ends %v", name, targets)
				from, to = to, from
			}
		})
	}
}

// targetsOf are the ends at which a window is struck, window by window: each end in one
// of its own. Where there is no time for that, one window is struck again and again.
func targetsOf(what string, ends int) (windows [][]int) {
	if !exhaustive() {
		if what == "host" {
			return [][]int{{ends / 4, ends * 2 / 3}}
		}
		return [][]int{{1, 8, 19, 30, 37, 44, 55, 66}}
	}
	for at := 1; at <= ends; at++ {
		windows = append(windows, []int{at})
	}
	return windows
}

// run carries a window out, whatever strikes, and says how many ends of writes it had.
func (m *machine) run(id string, from, to versions, strike func(end)) int {
	m.t.Helper()
	ends, rebooted := m.attempt(id, from, to, strike)
	require.False(m.t, rebooted)
	return ends
}

// attempt is run where the host may be killed. A host that boots again before the first
// step was begun is as it was, and its plan, which was made in another boot, is not begun.
func (m *machine) attempt(id string, from, to versions, strike func(end)) (ends int, rebooted bool) {
	m.t.Helper()
	plan := window(m.t, from, to)
	m.stage(plan)
	since := len(m.dpkgLog()) - 1
	begin := time.Now()
	m.submit(upgrade.Operation{ID: id, Machine: m.Name(), Plan: plan})
	g := m.guard(strike)
	m.start(id)
	rec := m.follow(id)
	g.open()
	if rec.Reason == "HostRebooted" {
		require.False(m.t, rec.Touched())
		return len(g.seen()), true
	}
	require.Equal(m.t, journal.Successful, rec.State, "%s: %s: %s", id, rec.Reason, rec.Message)
	m.requireInstalledOnce(since, to, id)
	m.t.Logf("%s to %s: %s", id, to, time.Since(begin).Round(100*time.Millisecond))
	return len(g.seen()), false
}
