package executor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
)

var plans = map[string]func(*testing.T) *bench{"worker": worker, "control plane": controlPlane, "reboot": rebooting, "certificates": renewing, "etcd": etcdMember, "etcd alone": etcdOnly}

// sampled is the distance between the points of a test that has too many for every run.
// It divides none of the cycles in which points come; `make e2e` has them all.
func sampled(distance int) int {
	if os.Getenv("REFIT_EXHAUSTIVE") != "" {
		return 1
	}
	return distance
}

// A process may end at any point: before or after each write of the journal, before,
// after or amid each effect on the host. The host ends up as if it had not.
func TestACrashAtAnyPointLeadsToTheSameHost(t *testing.T) {
	for name, make := range plans {
		t.Run(name, func(t *testing.T) {
			clean := make(t)
			require.Equal(t, journal.Successful, clean.finish().State)
			points, want := clean.host.Points(), comparable(clean.host.Snapshot())
			require.Greater(t, points, 100)
			for at := 1; at <= points; at++ {
				b := make(t)
				where := b.crashAt(at)
				b.requireAsIfNothingHappened(b.finish(), want, where)
			}
		})
	}
}

// The same where the power goes: the host boots again, and of the journal there is any
// state that this could leave. Where the plan had not begun, a new one is asked for.
func TestAPowerLossAtAnyPointLeadsToTheSameHost(t *testing.T) {
	for name, make := range plans {
		t.Run(name, func(t *testing.T) {
			clean := make(t)
			initial := comparable(clean.host.Snapshot())
			require.Equal(t, journal.Successful, clean.finish().State)
			want, states := comparable(clean.host.Snapshot()), 0
			for at := 1; at <= clean.host.Points(); at += sampled(7) {
				for state, more := 0, true; more; state++ {
					b := make(t)
					where := fmt.Sprintf("%s, state %d", b.crashAt(at), state)
					left := b.fs.Survivors()
					more = state+1 < len(left)
					b.fs.Become(left[state])
					b.host.PowerLoss()
					states++
					rec := b.finish()
					if rec.Reason == "HostRebooted" {
						require.Equal(t, initial, comparable(b.host.Snapshot()), where)
						continue
					}
					b.requireAsIfNothingHappened(rec, want, where)
				}
			}
			t.Logf("%d states after a power loss", states)
		})
	}
}

// Without one of the two kinds of sync, what the test above asserts does not hold: the
// journal is damaged, or older than what was done to the host.
func TestWithoutASyncAPowerLossLeadsToAnotherHost(t *testing.T) {
	for name, tune := range map[string]func(*bench){
		"of files":       func(b *bench) { b.fs.NoSync = true },
		"of directories": func(b *bench) { b.fs.NoSyncDir = true },
	} {
		t.Run(name, func(t *testing.T) {
			clean := worker(t)
			require.Equal(t, journal.Successful, clean.finish().State)
			want := comparable(clean.host.Snapshot())
			for at := clean.host.Points() * 3 / 4; at <= clean.host.Points(); at++ {
				b := worker(t)
				tune(b)
				b.crashAt(at)
				for _, left := range b.fs.Survivors() {
					b.fs.Become(left)
					b.host.PowerLoss()
					if rec, err, _ := b.run(); err != nil || rec.State != journal.Successful || !assert.ObjectsAreEqual(want, comparable(b.host.Snapshot())) {
						return // noticed
					}
				}
			}
			require.Fail(t, "nothing was noticed")
		})
	}
}

// crashAt lets a process end at a point.
func (b *bench) crashAt(at int) (where string) {
	b.t.Helper()
	b.host.CrashAt = at
	_, _, where = b.run()
	for where == "rebooting" && b.host.Points() < at {
		_, _, where = b.run()
	}
	b.host.CrashAt = 0
	return fmt.Sprintf("point %d, %s", at, where)
}

func (b *bench) requireAsIfNothingHappened(rec journal.Record, want hostfake.State, where string) {
	b.t.Helper()
	require.Equal(b.t, journal.Successful, rec.State, "%s: %s", where, rec.Message)
	require.Equal(b.t, want, comparable(b.host.Snapshot()), where)
	b.requireEffectiveOnce(where, 1)
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
		where := b.crashAt(at)
		rec := b.finish()
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
	for first := 1; first <= points; first += sampled(7) {
		for second := 1; second <= points-first; second += 17 {
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
