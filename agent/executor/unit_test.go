package executor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// A custom build may never report the version that was asked for. It is compared, and
// not restarted until it does.
func TestAUnitIsRestartedOnceWhateverVersionItReports(t *testing.T) {
	for reported, state := range map[string]journal.State{
		"v1.36.9":               journal.Failed,
		"v1.37.2-rc.1":          journal.Failed,
		"v1.37.2-dirty":         journal.Successful,
		"v" + newKubernetes:     journal.Successful,
		"v1.37.2+k3s1":          journal.Successful,
		"v1.37.2-eks-a5ec690":   journal.Successful,
		"garbage, not a number": journal.Failed,
	} {
		t.Run(reported, func(t *testing.T) {
			b := worker(t)
			restarts := 0
			b.host.FailIf = func(label string) error {
				rec, err := b.record()
				if err != nil || rec.RollingBack {
					return nil //nolint:nilerr // no journal yet
				}
				if label == "restart kubelet.service" {
					restarts++
				}
				if label == "kubelet version" && restarts > 0 {
					b.host.State.Kubelet = reported
				}
				return nil
			}
			rec := b.finish()
			assert.Equal(t, state, rec.State, rec.Message)
			assert.Equal(t, 1, restarts)
			if state == journal.Failed {
				assert.Equal(t, "KubeletVersionMismatch", rec.Reason)
				assert.True(t, rec.RolledBack, rec.Message)
			}
		})
	}
}

// A runtime that was just restarted refuses connections for a while. A lost connection is
// neither success nor failure.
func TestASocketThatIsNotBackYetIsWaitedFor(t *testing.T) {
	b := worker(t)
	refuse := 0
	b.host.FailIf = func(label string) error {
		switch {
		case label == "restart containerd.service":
			refuse = 20
		case refuse > 0 && (label == "runtime version" || label == "active containerd.service"):
			refuse--
			return errors.New("containerd.sock: connection refused")
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Zero(t, refuse)
	assert.Equal(t, 1, count(b.host.Log, "restart containerd.service"))
}

// A kernel that was cut off in its installation would not boot.
func TestAHostIsNotRebootedWhileAPackageIsHalfDone(t *testing.T) {
	t.Run("its own transaction failed", func(t *testing.T) {
		b := rebooting(t)
		b.host.FailIf = failing("install linux-image-amd64=6.12-1")
		rec := b.finish()
		assert.Equal(t, upgrade.StepInstallPackages, rec.FailedStep)
		assert.Zero(t, count(b.host.Log, "reboot"))
	})
	for name, tc := range map[string]struct {
		state   string
		reboots int
		reason  string
	}{
		"somebody else's, and a repair helps": {"half-configured", 1, ""},
		"somebody else's, and none does":      {"half-installed", 0, "RebootFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := rebooting(t)
			b.host.RebootIgnored = true
			b.host.FailIf = func(label string) error {
				if rec, err := b.record(); err == nil && rec.Next() == 2 && rec.Steps[2].State == journal.StepBegun && label == "facts" && b.host.Packages["initramfs-tools"].State == "" {
					b.host.Packages["initramfs-tools"] = hostfake.Package{Version: "1", State: tc.state}
				}
				return nil
			}
			rec := b.finish()
			assert.Equal(t, tc.reboots > 0, count(b.host.Log, "reboot") > 0, rec.Message)
			if tc.reason != "" {
				assert.Equal(t, tc.reason, rec.Reason)
				assert.Contains(t, rec.Message, "initramfs-tools")
			}
		})
	}
}

// At a boot the units come up beside the resumed operation: what does not say yet what it
// runs is waited for, and no other version than the planned one.
func TestPreflightWaitsForWhatIsNotUpYet(t *testing.T) {
	for name, tc := range map[string]struct {
		looks  int
		reason string
	}{
		"it comes up":   {6, ""},
		"it never does": {1 << 20, "HostChanged"},
	} {
		t.Run(name, func(t *testing.T) {
			b := worker(t)
			b.host.Active["kubelet.service"] = false
			looks := 0
			b.host.FailIf = func(label string) error {
				if label == "facts" {
					if looks++; looks == tc.looks {
						b.host.Active["kubelet.service"] = true
					}
				}
				return nil
			}
			rec := b.finish()
			assert.Equal(t, tc.reason, rec.Reason, rec.Message)
			if tc.reason != "" {
				assert.Contains(t, rec.Message, "the kubelet does not say what it runs")
				assert.Contains(t, rec.Message, "nothing was changed")
			}
		})
	}
}
