package executor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
)

var plans = map[string]func(*testing.T) *bench{"worker": worker, "control plane": controlPlane, "reboot": rebooting, "certificates": renewing}

// A process may end at any point: before or after each write of the journal, before,
// after or amid each effect on the host. The host ends up as if it had not.
func TestACrashAtAnyPointLeadsToTheSameHost(t *testing.T) {
	for name, make := range plans {
		for _, loss := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/power loss=%v", name, loss), func(t *testing.T) {
				clean := make(t)
				require.Equal(t, journal.Successful, clean.finish().State)
				points, want := clean.host.Points(), comparable(clean.host.Snapshot())
				require.Greater(t, points, 100)
				for at := 1; at <= points; at++ {
					b := make(t)
					initial := comparable(b.host.Snapshot())
					rec, where := b.crashAt(at, loss)
					if rec.Reason == "HostRebooted" || rec.Reason == "HostChanged" {
						require.True(t, loss, where) // the plan was made in another boot; nothing had been done
						require.Equal(t, initial, comparable(b.host.Snapshot()), where)
						continue
					}
					require.Equal(t, journal.Successful, rec.State, "%s: %s", where, rec.Message)
					require.Equal(t, want, comparable(b.host.Snapshot()), where)
					b.requireEffectiveOnce(where, 1)
				}
			})
		}
	}
}

// crashAt lets the first process end at a point, and a second one go on.
func (b *bench) crashAt(at int, loss bool) (journal.Record, string) {
	b.t.Helper()
	b.host.CrashAt = at
	_, _, where := b.run()
	for where == "rebooting" && b.host.Points() < at {
		_, _, where = b.run()
	}
	b.host.CrashAt = 0
	where = fmt.Sprintf("point %d, %s", at, where)
	if loss {
		b.host.PowerLoss()
		b.fs.PowerLoss()
	}
	return b.finish(), where
}

func (b *bench) requireEffectiveOnce(where string, crashes int) {
	b.t.Helper()
	for effect, times := range b.host.Snapshot().Effects {
		if strings.HasPrefix(effect, "unpack ") || effect == "reboot" {
			require.Equal(b.t, 1, times, "%s: %s", where, effect)
		}
		require.LessOrEqual(b.t, times, crashes+1, "%s: %s", where, effect)
	}
}

// The same for the way back: the last step fails, and the process ends at any point of the rollback.
func TestACrashAmidARollbackLeadsToTheOldHost(t *testing.T) {
	clean := worker(t)
	want := comparable(clean.host.Snapshot())
	last := len(clean.op.Plan.Steps) - 1
	failed := 0 // the point at which the direction turns; the ones before are another test's
	fail := clean.failWhileForward(last, "probe sandbox")
	clean.host.FailIf = func(label string) error {
		err := fail(label)
		if err != nil {
			failed = clean.host.Points()
		}
		return err
	}
	require.True(t, clean.finish().RolledBack)
	require.Positive(t, failed)
	for at := failed; at <= clean.host.Points(); at++ {
		b := worker(t)
		b.host.FailIf = b.failWhileForward(last, "probe sandbox")
		rec, where := b.crashAt(at, false)
		require.Equal(t, journal.Failed, rec.State, where)
		require.Equal(t, "SandboxFailed", rec.Reason, where)
		require.True(t, rec.RolledBack, "%s: %s", where, rec.Message)
		require.Equal(t, want, comparable(b.host.Snapshot()), where)
	}
}

// Two crashes in a row, at any two points of a shorter plan.
func TestTwoCrashesLeadToTheSameHost(t *testing.T) {
	clean := controlPlane(t)
	require.Equal(t, journal.Successful, clean.finish().State)
	want, points := comparable(clean.host.Snapshot()), clean.host.Points()
	for first := 1; first <= points; first += 5 {
		for second := 1; second <= points-first; second += 11 {
			b := controlPlane(t)
			b.host.CrashAt = first
			_, _, _ = b.run()
			b.host.CrashAt = b.host.Points() + second
			_, _, _ = b.run()
			b.host.CrashAt = 0
			rec := b.finish()
			where := fmt.Sprintf("points %d and %d later", first, second)
			require.Equal(t, journal.Successful, rec.State, "%s: %s", where, rec.Message)
			require.Equal(t, want, comparable(b.host.Snapshot()), where)
			b.requireEffectiveOnce(where, 2)
		}
	}
}
