package systemd

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onHost skips where there is no systemd to disturb. In a test host it runs for real.
func onHost(t *testing.T) *Manager {
	t.Helper()
	if os.Getenv("REFIT_HOST_TESTS") != "1" {
		t.Skip("needs a host whose PID 1 is systemd and that may be disturbed: set REFIT_HOST_TESTS=1 there")
	}
	m := New()
	t.Cleanup(m.Close)
	return m
}

func transient(t *testing.T, m *Manager, argv ...string) TransientUnit {
	t.Helper()
	u := TransientUnit{Name: "refit-test-" + strconv.FormatInt(time.Now().UnixNano(), 36), Description: "Refit test", Argv: argv, StopTimeout: time.Second}
	t.Cleanup(func() {
		_ = m.Stop(context.Background(), ServiceName(u.Name))
		_ = m.Release(context.Background(), u.Name)
	})
	return u
}

func TestHostTransientUnitTellsItsExitCode(t *testing.T) {
	m := onHost(t)
	u := transient(t, m, "/bin/sh", "-c", "sleep 1; exit 3")
	require.NoError(t, m.StartTransient(t.Context(), u))
	require.ErrorIs(t, m.StartTransient(t.Context(), u), ErrRunning)
	exit, err := m.Wait(t.Context(), u.Name)
	require.NoError(t, err)
	assert.Equal(t, Exit{Result: "exit-code", Code: 3}, exit)
}

func TestHostTransientUnitIsFoundAgainAfterItsEnd(t *testing.T) {
	m := onHost(t)
	u := transient(t, m, "/bin/true")
	require.NoError(t, m.StartTransient(t.Context(), u))
	for range 2 { // another manager is what another process would have
		exit, err := New().Wait(t.Context(), u.Name)
		require.NoError(t, err)
		assert.True(t, exit.Success(), "%+v", exit)
	}
	require.NoError(t, m.Release(t.Context(), u.Name))
	_, err := m.Wait(t.Context(), u.Name)
	require.ErrorIs(t, err, ErrGone)

	require.NoError(t, m.StartTransient(t.Context(), u), "a released name can be used again")
	_, err = m.Wait(t.Context(), u.Name)
	require.NoError(t, err)
	require.NoError(t, m.StartTransient(t.Context(), u), "so can one that has ended")
}

func TestHostTransientUnitKilledBySignal(t *testing.T) {
	m := onHost(t)
	u := transient(t, m, "/bin/sleep", "300")
	require.NoError(t, m.StartTransient(t.Context(), u))
	status, err := m.Status(t.Context(), ServiceName(u.Name))
	require.NoError(t, err)
	require.NotZero(t, status.MainPID)
	require.NotNil(t, status.StartTime)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	_, err = m.Wait(ctx, u.Name)
	cancel()
	require.ErrorIs(t, err, context.DeadlineExceeded)

	time.AfterFunc(300*time.Millisecond, func() { _ = syscall.Kill(int(status.MainPID), syscall.SIGKILL) })
	exit, err := m.Wait(t.Context(), u.Name)
	require.NoError(t, err)
	assert.Equal(t, Exit{Result: "signal", Code: -1, Signal: 9}, exit)
}

// An executor that is killed leaves kubeadm or dpkg behind, in a process group of its
// own. They must not run beside the next executor, nor hold it up: systemd kills them at
// once, and does not wait for the time that a stop would have.
func TestHostChildrenOfAKilledMainProcessAreGoneWhenItsUnitHasEnded(t *testing.T) {
	for name, stop := range map[string]bool{"while it works": false, "while it is being stopped": true} {
		t.Run(name, func(t *testing.T) {
			m := onHost(t)
			pidFile := filepath.Join(t.TempDir(), "child")
			u := transient(t, m, "/bin/sh", "-c", `trap "" TERM; setsid sleep 300 & echo $! > "$0"; while :; do sleep 1; done`, pidFile)
			u.StopTimeout = 0 // that of an operation
			require.NoError(t, m.StartTransient(t.Context(), u))
			child := 0
			require.Eventually(t, func() bool {
				text, err := os.ReadFile(pidFile)
				child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return err == nil && child > 0
			}, 10*time.Second, 20*time.Millisecond)
			status, err := m.Status(t.Context(), ServiceName(u.Name))
			require.NoError(t, err)
			if stop {
				go func() { _ = m.Stop(context.WithoutCancel(t.Context()), ServiceName(u.Name)) }()
				require.Eventually(t, func() bool {
					status, err := m.Status(t.Context(), ServiceName(u.Name))
					return err == nil && status.ActiveState == "deactivating"
				}, 10*time.Second, 20*time.Millisecond)
			}
			require.NoError(t, syscall.Kill(int(status.MainPID), syscall.SIGKILL))

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = m.Wait(ctx, u.Name)
			require.NoError(t, err, "nobody waits for the time of a stop")
			assert.Eventually(t, func() bool { return !alive(child) }, 5*time.Second, 20*time.Millisecond)
		})
	}
}

// alive leaves out one that is dead and has not been reaped.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestHostTransientUnitThatCannotStartFailsAtOnce(t *testing.T) {
	m := onHost(t)
	u := transient(t, m, "/no/such/program")
	var failure *JobError
	require.ErrorAs(t, m.StartTransient(t.Context(), u), &failure)
	assert.Equal(t, "failed", failure.Result)
}

func TestHostUnitIsRestartedStoppedAndStarted(t *testing.T) {
	m := onHost(t)
	unit := "refit-test-daemon.service"
	path := filepath.Join("/run/systemd/system", unit)
	require.NoError(t, os.WriteFile(path, []byte("[Service]\nExecStart=/bin/sleep 300\n"), 0o644))
	t.Cleanup(func() {
		_ = m.Stop(context.Background(), unit)
		_ = os.Remove(path)
		_ = m.Reload(context.Background())
	})
	require.NoError(t, m.Reload(t.Context()))
	require.NoError(t, m.Start(t.Context(), unit))
	before, err := m.Status(t.Context(), unit)
	require.NoError(t, err)
	assert.Equal(t, path, before.Fragment)

	require.NoError(t, m.Restart(t.Context(), unit))
	after, err := m.Status(t.Context(), unit)
	require.NoError(t, err)
	assert.NotEqual(t, before.MainPID, after.MainPID)

	require.NoError(t, m.Stop(t.Context(), unit))
	active, err := m.Active(t.Context(), unit)
	require.NoError(t, err)
	assert.False(t, active)
	require.Error(t, m.Restart(t.Context(), "refit-test-absent.service"))
	active, err = m.Active(t.Context(), "refit-test-absent.service")
	require.NoError(t, err)
	assert.False(t, active)
}

func TestHostChangesOfUnitsAreTold(t *testing.T) {
	m := onHost(t)
	unit := "refit-test-watched.service"
	changes := Changes(t.Context(), unit, "refit-test-absent.service")
	time.Sleep(time.Second) // a subscription has no answer to wait for
	path := filepath.Join("/run/systemd/system", unit)
	require.NoError(t, os.WriteFile(path, []byte("[Service]\nExecStart=/bin/sleep 300\n"), 0o644))
	t.Cleanup(func() {
		_ = m.Stop(context.Background(), unit)
		_ = os.Remove(path)
		_ = m.Reload(context.Background())
	})
	require.NoError(t, m.Reload(t.Context()))
	for verb, do := range map[string]func(context.Context, string) error{"started": m.Start, "restarted": m.Restart} {
		require.NoError(t, do(t.Context(), unit))
		select {
		case got := <-changes:
			assert.Equal(t, unit, got)
		case <-time.After(5 * time.Second):
			assert.Fail(t, "nobody told that the unit was "+verb)
		}
		for quiet := false; !quiet; {
			select {
			case <-changes:
			case <-time.After(time.Second):
				quiet = true
			}
		}
	}
}
