package launch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// units records calls; start is what the program does.
type units struct {
	calls   []string
	started systemd.TransientUnit
	start   func(argv []string)
	exit    systemd.Exit
	waitErr error
	running map[string]bool
	// statusErr is the answer of a host without systemd.
	statusErr error
}

func (u *units) StartTransient(_ context.Context, unit systemd.TransientUnit) error {
	u.calls = append(u.calls, "start "+unit.Name)
	u.started = unit
	if u.running[systemd.ServiceName(unit.Name)] {
		return systemd.ErrRunning
	}
	if u.start != nil {
		u.start(unit.Argv)
	}
	return nil
}

func (u *units) Wait(_ context.Context, name string) (systemd.Exit, error) {
	u.calls = append(u.calls, "wait "+name)
	return u.exit, u.waitErr
}

func (u *units) Release(_ context.Context, name string) error {
	u.calls = append(u.calls, "release "+name)
	return nil
}

func (u *units) Stop(_ context.Context, name string) error {
	u.calls = append(u.calls, "stop "+name)
	delete(u.running, name)
	return nil
}

func (u *units) Status(_ context.Context, name string) (systemd.Status, error) {
	if u.running[name] {
		return systemd.Status{LoadState: "loaded", ActiveState: "active", SubState: "running"}, nil
	}
	return systemd.Status{LoadState: "not-found"}, u.statusErr
}

func executor(t *testing.T, u *units) *launch.Executor {
	t.Helper()
	return &launch.Executor{Units: u, Program: "/usr/bin/refit-executor", RunDir: filepath.Join(t.TempDir(), "refit")}
}

// writes is a program that leaves text in the file after --output.
func writes(t *testing.T, text string) func([]string) {
	return func(argv []string) {
		i := slices.Index(argv, "--output")
		require.GreaterOrEqual(t, i, 0, "%q", argv)
		require.NoError(t, os.WriteFile(argv[i+1], []byte(text), 0o600))
	}
}

func success() systemd.Exit { return systemd.Exit{Result: "success"} }

func TestFactsComeFromATransientUnit(t *testing.T) {
	u := &units{exit: success(), start: writes(t, `{"host":{"machineID":"m"}}`)}
	facts, err := executor(t, u).Facts(t.Context(), []string{"openssl", "telnet"})
	require.NoError(t, err)
	assert.Equal(t, "m", facts.Host.MachineID)
	assert.Equal(t, []string{"/usr/bin/refit-executor", "facts", "-o", "json", "--package", "openssl", "--package", "telnet"}, u.started.Argv[:8])
	assert.NotZero(t, u.started.RuntimeLimit, "a probe that hangs is ended")
	assert.Equal(t, []string{"start refit-probe-facts", "wait refit-probe-facts", "release refit-probe-facts"}, u.calls)
}

func TestResultOfAnEarlierProbeIsNeverTakenForThisOne(t *testing.T) {
	u := &units{exit: success()}
	x := executor(t, u)
	require.NoError(t, os.MkdirAll(x.RunDir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(x.RunDir, "facts.json"), []byte(`{"host":{"machineID":"old"}}`), 0o600))
	_, err := x.Facts(t.Context(), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestProbeThatStillRunsIsEndedFirst(t *testing.T) {
	u := &units{exit: success(), start: writes(t, `[]`), running: map[string]bool{"refit-probe-candidates.service": true}}
	_, err := executor(t, u).Candidates(t.Context(), upgrade.CandidateRequest{Packages: []string{"kubelet"}})
	require.NoError(t, err)
	assert.Equal(t, "stop refit-probe-candidates.service", u.calls[0])
}

func TestWithoutSystemdNothingIsLeftOnTheHost(t *testing.T) {
	x := executor(t, &units{statusErr: systemd.ErrUnavailable})
	_, err := x.Facts(t.Context(), nil)
	require.ErrorIs(t, err, systemd.ErrUnavailable)
	_, err = x.Candidates(t.Context(), upgrade.CandidateRequest{Packages: []string{"kubelet"}})
	require.ErrorIs(t, err, systemd.ErrUnavailable)
	assert.NoDirExists(t, x.RunDir)
}

func TestProbeThatNobodyWaitsForAnyMoreIsEnded(t *testing.T) {
	u := &units{waitErr: context.Canceled}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := executor(t, u).Facts(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, u.calls, "stop refit-probe-facts.service")
}

func TestFailedProbeSaysWhy(t *testing.T) {
	failed := systemd.Exit{Result: "exit-code", Code: 1}
	t.Run("by the reason that it left", func(t *testing.T) {
		u := &units{exit: failed, start: writes(t, `{"failure":{"reason":"SourceUnavailable","message":"mirror.example: connection refused"}}`)}
		_, err := executor(t, u).Candidates(t.Context(), upgrade.CandidateRequest{})
		var blocked *upgrade.Blocked
		require.ErrorAs(t, err, &blocked)
		assert.Equal(t, "SourceUnavailable", blocked.Reason)
		assert.False(t, blocked.Terminal)
	})
	t.Run("by its message when it has no reason of its own", func(t *testing.T) {
		u := &units{exit: failed, start: writes(t, `{"failure":{"reason":"","message":"waiting for the lock: refit-executor (pid 7) holds it"}}`)}
		_, err := executor(t, u).Candidates(t.Context(), upgrade.CandidateRequest{})
		require.ErrorContains(t, err, "(pid 7) holds it")
		var blocked *upgrade.Blocked
		require.NotErrorAs(t, err, &blocked)
	})
	t.Run("by its exit when it left none", func(t *testing.T) {
		_, err := executor(t, &units{exit: failed}).Facts(t.Context(), nil)
		var ended *launch.Error
		require.ErrorAs(t, err, &ended)
		assert.Contains(t, err.Error(), "journalctl -u refit-probe-facts.service")
	})
}

func TestStageTellsARefusalFromAFault(t *testing.T) {
	const findings = `{"findings":[{"severity":"Error","reason":"DiskFull","message":"/var is full"}]}`
	for name, tc := range map[string]struct {
		code    int
		refused bool
		wantErr bool
	}{
		"staged":  {0, false, false},
		"refused": {3, true, false},
		"a fault": {1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &units{exit: systemd.Exit{Result: "exit-code", Code: tc.code}, start: writes(t, findings)}
			if tc.code == 0 {
				u.exit = success()
			}
			result, err := executor(t, u).Stage(t.Context(), upgrade.Plan{})
			assert.Equal(t, tc.wantErr, err != nil)
			assert.Equal(t, tc.refused, result.Refused)
			if !tc.wantErr {
				assert.Equal(t, "DiskFull", result.Findings[0].Reason)
			}
		})
	}
}

func TestRunningOperationIsLeftAlone(t *testing.T) {
	u := &units{running: map[string]bool{"refit-op-g1.service": true}}
	x := executor(t, u)
	require.NoError(t, x.Start(t.Context(), "g1"))
	running, err := x.Running(t.Context(), "g1")
	require.NoError(t, err)
	assert.True(t, running)
}

// At boot the resume unit drives the operation: it counts as running, and is waited for.
func TestResumeAtBootCountsAsRunning(t *testing.T) {
	u := &units{running: map[string]bool{"refit-resume.service": true}}
	x := executor(t, u)
	running, err := x.Running(t.Context(), "g1")
	require.NoError(t, err)
	assert.True(t, running)
	require.NoError(t, x.Wait(t.Context(), "g1"))
	assert.Equal(t, []string{"wait refit-resume.service"}, u.calls)
}

func TestUnitThatIsGoneHasEnded(t *testing.T) {
	u := &units{running: map[string]bool{"refit-op-g1.service": true}, waitErr: errors.Join(systemd.ErrGone)}
	require.NoError(t, executor(t, u).Wait(t.Context(), "g1"))
}
