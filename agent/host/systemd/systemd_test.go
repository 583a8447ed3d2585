package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheStateOfAUnitIsReadFromItsProperties(t *testing.T) {
	properties := map[string]any{
		"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "Result": "success",
		"UnitFileState": "enabled", "FragmentPath": "/lib/systemd/system/kubelet.service", "DropInPaths": []string{"/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"},
		"MainPID": uint32(812), "ExecMainCode": int32(0), "ExecMainStatus": int32(0), "ExecMainStartTimestamp": uint64(1700000000000000),
	}
	status := statusFrom("kubelet.service", properties)
	require.NotNil(t, status.StartTime)
	assert.Equal(t, time.Unix(1700000000, 0).UTC(), *status.StartTime)
	assert.True(t, status.Exists())
	assert.True(t, status.Running())
	assert.Len(t, status.DropIns, 1)
	assert.Equal(t, "enabled", status.FileState)

	properties["MainPID"] = uint32(0)
	assert.Nil(t, statusFrom("kubelet.service", properties).StartTime, "a process that has ended has no start time to report")
}

func TestRunningKnowsTheStatesOfSystemd(t *testing.T) {
	for name, tc := range map[string]struct {
		active, sub string
		want        bool
	}{
		"a daemon":                        {"active", "running", true},
		"a transient unit that has ended": {"active", "exited", false},
		"one that waits for its restart":  {"activating", "auto-restart", true},
		"one that is being stopped":       {"deactivating", "stop-sigterm", true},
		"a failed one":                    {"failed", "failed", false},
		"a stopped one":                   {"inactive", "dead", false},
		"a unit that does not exist":      {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, Status{ActiveState: tc.active, SubState: tc.sub}.Running())
		})
	}
}

func TestAUnitOutlivesItsMainProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		status Status
		want   bool
	}{
		"its process is there":                       {Status{ActiveState: "active", SubState: "running", MainPID: 7}, true},
		"its process is being stopped":               {Status{ActiveState: "deactivating", SubState: "stop-sigterm", MainPID: 7}, true},
		"what its process has left is being ended":   {Status{ActiveState: "deactivating", SubState: "final-sigkill"}, false},
		"its process is about to be":                 {Status{ActiveState: "activating", SubState: "start"}, true},
		"nothing is left of it but how it has ended": {Status{ActiveState: "active", SubState: "exited"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.status.Alive())
		})
	}
}

func TestAnEndBySignalIsNotAnExitCode(t *testing.T) {
	assert.Equal(t, Exit{Result: "exit-code", Code: 3}, exitOf(Status{Result: "exit-code", ExitCode: 1, ExitStatus: 3}))
	assert.Equal(t, Exit{Result: "signal", Code: -1, Signal: 9}, exitOf(Status{Result: "signal", ExitCode: 2, ExitStatus: 9}))
	assert.True(t, exitOf(Status{Result: "success", ExitCode: 1}).Success())
	assert.False(t, exitOf(Status{Result: "timeout", ExitCode: 1}).Success())
}

func TestATransientUnitIsCheckedBeforeTheBusIsAsked(t *testing.T) {
	for name, unit := range map[string]TransientUnit{
		"no name":           {Argv: []string{"/bin/true"}},
		"a name of a path":  {Name: "../x", Argv: []string{"/bin/true"}},
		"no program":        {Name: "refit-op-1"},
		"a relative path":   {Name: "refit-op-1", Argv: []string{"true"}},
		"a name with space": {Name: "refit op", Argv: []string{"/bin/true"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Error(t, New().StartTransient(t.Context(), unit))
		})
	}
}

// With mixed a stop reaches only the main process, which lets a transaction finish; once
// that has ended, however it did, systemd kills what is left of the unit at once.
// control-group would give the children of a killed executor the whole time of a stop,
// and the unit would count as running for as long; process would leave them behind.
func TestATransientUnitLeavesNoChildBehindAndWaitsForNone(t *testing.T) {
	properties := map[string]any{}
	for _, p := range (TransientUnit{Name: "refit-op-1", Argv: []string{"/bin/true"}}).properties() {
		properties[p.Name] = p.Value.Value()
	}
	assert.Equal(t, "mixed", properties["KillMode"])
	assert.NotContains(t, properties, "SendSIGKILL", "systemd's default is to send it")
	assert.NotContains(t, properties, "ExecStopPost", "with one, children of a main process that has ended are left alone")
	assert.Equal(t, uint64((5 * time.Minute).Microseconds()), properties["TimeoutStopUSec"])
}

func TestWithoutABusTheErrorSaysSo(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/no-bus")
	_, err := New().Status(t.Context(), "kubelet.service")
	require.ErrorIs(t, err, ErrUnavailable)
	_, err = New().Wait(t.Context(), "refit-op-1")
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, unavailable(errors.New("denied")), ErrUnavailable)
	require.ErrorIs(t, unavailable(fs.ErrNotExist), ErrUnavailable)
}

// A plain host or a container may have no bus at all, or one without systemd on it: both
// are told from a systemd that refuses, since then a child can probe the host.
func TestAHostWithoutSystemdIsToldFromOneThatRefuses(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "")
	dir := t.TempDir()
	there, missing := filepath.Join(dir, "there"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	assert.True(t, noBus([]string{missing}))
	assert.False(t, noBus([]string{missing, there}))
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+there)
	assert.False(t, noBus([]string{missing}), "the bus is where the environment says")

	assert.True(t, noManager(fmt.Errorf("asking: %w", dbus.Error{Name: "org.freedesktop.DBus.Error.ServiceUnknown"})))
	assert.False(t, noManager(dbus.Error{Name: "org.freedesktop.DBus.Error.AccessDenied"}))
	assert.False(t, noManager(nil))
}

// With the bus where it is by default, which the library words in an error of its own.
func TestAMissingBusIsKnownWhereNobodyNamesAnother(t *testing.T) {
	if !noBus(sockets) {
		t.Skip("this machine has a system bus")
	}
	_, err := New().Status(t.Context(), "kubelet.service")
	require.ErrorIs(t, err, ErrUnavailable)
}

func TestAFailedJobSaysWhereToLook(t *testing.T) {
	err := &JobError{Verb: "restarting", Unit: "kubelet.service", Result: "failed",
		Status: Status{ActiveState: "failed", SubState: "failed", Result: "exit-code", ExitStatus: 1}}
	assert.Equal(t, "restarting kubelet.service: job failed; the unit is failed (failed), result exit-code, exit status 1; see: journalctl -u kubelet.service", err.Error())
	assert.True(t, isNoSuchUnit(dbus.Error{Name: "org.freedesktop.systemd1.NoSuchUnit"}))
	assert.False(t, isNoSuchUnit(errors.New("NoSuchUnit")))
}

func TestOnlyChangesOfTheProcessAreTold(t *testing.T) {
	changed := func(properties ...string) *dbus.Signal {
		values := map[string]dbus.Variant{}
		for _, p := range properties {
			values[p] = dbus.MakeVariant("x")
		}
		return &dbus.Signal{Body: []any{"org.freedesktop.systemd1.Service", values, []string{}}}
	}
	assert.True(t, ofProcess(changed("MainPID", "ExecMainPID")))
	assert.True(t, ofProcess(changed("ActiveState")))
	assert.False(t, ofProcess(changed("StatusText")))
	assert.False(t, ofProcess(&dbus.Signal{Body: []any{uint32(1)}}))
}

func TestWithoutABusChangesEndWithTheirContext(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+t.TempDir()+"/no-bus")
	ctx, cancel := context.WithCancel(t.Context())
	changes := Changes(ctx, "kubelet.service")
	cancel()
	_, open := <-changes
	assert.False(t, open)
}
