package executor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// labels of the effect of each step of the worker's plan.
var workerEffects = []string{
	"facts", "hook raid-check", "switch " + sourceFile + " http://mirror/v1.37/deb/", "hold=false kubeadm",
	"install kubeadm=1.37.2-1.1", "hold=true kubeadm", "kubeadm upgrade v1.37.2", "write " + dropIn, "stop sandboxes",
	"install containerd=2.4.2-1", "reload", "restart containerd.service", "hold=false kubelet,kubectl",
	"install kubectl=1.37.2-1.1,kubelet=1.37.2-1.1", "hold=true kubelet,kubectl", "reload", "restart kubelet.service", "probe sandbox",
}

// The effect of step i fails for good, until the direction turns: everything before it is undone.
func TestAFailureOfEachStepLeadsBackToTheOldHost(t *testing.T) {
	require.Len(t, workerEffects, len(workerPlan().Steps), "one effect for each step")
	for i, effect := range workerEffects {
		t.Run(fmt.Sprintf("%d %s", i, effect), func(t *testing.T) {
			b := worker(t)
			before := comparable(b.host.Snapshot())
			b.host.FailIf = b.failWhileForward(i, effect)
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State)
			assert.NotEmpty(t, rec.Reason)
			assert.Contains(t, rec.Message, "injected")
			assert.Equal(t, rec.Steps[i].Kind, rec.Telling(), "the step that failed, not the last of the rollback")
			assert.Equal(t, before, comparable(b.host.Snapshot()))
			assert.Empty(t, rec.NotUndone)
			if i > 0 {
				assert.True(t, rec.RolledBack, rec.Message)
			} else {
				assert.Contains(t, rec.Message, "nothing was changed")
			}
		})
	}
}

func (b *bench) failWhileForward(i int, effect string) func(string) error {
	return func(label string) error {
		if label != effect {
			return nil
		}
		rec, err := b.record()
		if err != nil || rec.RollingBack || rec.Next() != i || rec.Steps[i].State != journal.StepBegun {
			return nil //nolint:nilerr // no journal yet: nothing to break
		}
		return errors.New("injected: " + label)
	}
}

func (b *bench) record() (journal.Record, error) {
	return journal.NewStoreFS(b.dir, b.fs).Read(b.op.ID)
}

// Any single call to the host or the journal's disk fails once. The host ends in one of
// the two states, whole, with the outcome that goes with it; or the journal stays open
// and a resume gets there.
func TestAFailureOfAnySingleCallLeavesAWholeHost(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *bench{"worker": worker, "reboot": rebooting} {
		t.Run(name, func(t *testing.T) {
			clean := make(t)
			oldHost := comparable(clean.host.Snapshot())
			require.Equal(t, journal.Successful, clean.finish().State)
			newHost := comparable(clean.host.Snapshot())
			for at := 1; at <= clean.host.Calls(); at++ {
				b := make(t)
				b.host.FailAt = at
				rec, err, crash := b.run()
				where := fmt.Sprintf("call %d, %s", at, b.host.Log[min(at, len(b.host.Log))-1])
				for tries := 0; tries < 4 && (err != nil || crash == "rebooting"); tries++ {
					rec, err, crash = b.run() // what failed was the disk, or the boot id before the first record
				}
				require.True(t, rec.Finished(), where)
				got := comparable(b.host.Snapshot())
				switch {
				case rec.State == journal.Successful:
					require.Equal(t, newHost, got, where)
				case rec.RolledBack || strings.Contains(rec.Message, "nothing was changed"):
					require.Equal(t, oldHost, got, "%s: %s", where, rec.Message)
				default:
					require.NotEmpty(t, rec.NotUndone, "%s: %s", where, rec.Message)
				}
			}
		})
	}
}

func TestWhatCannotBeUndoneIsNamedAndTheRestIsUndone(t *testing.T) {
	b := worker(t)
	delete(b.host.Kept, "containerd "+oldRuntime+"-1")
	b.host.FailIf = b.failWhileForward(17, "probe sandbox")
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.False(t, rec.RolledBack)
	assert.Contains(t, strings.Join(rec.NotUndone, "\n"), "containerd "+oldRuntime+"-1 could not be kept")
	assert.Contains(t, rec.Message, "not undone")
	s := b.host.Snapshot()
	assert.Equal(t, "v"+oldKubernetes, s.Kubelet, "the kubelet went back all the same")
	assert.Equal(t, newRuntime, s.Runtime)
	assert.True(t, s.Packages["kubelet"].Held)
}

func TestAControlPlaneThatMovedDoesNotGoBack(t *testing.T) {
	b := controlPlane(t)
	downOnce := b.failWhileForward(9, "restart kubelet.service")
	b.host.FailIf = func(label string) error {
		err := downOnce(label)
		if err != nil {
			b.host.Active["kubelet.service"] = false
		}
		return err
	}
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.False(t, rec.RolledBack)
	assert.Contains(t, strings.Join(rec.NotUndone, "\n"), "control plane does not go back")
	s := b.host.Snapshot()
	assert.Equal(t, "v"+newKubernetes, s.Pods["kube-apiserver"])
	assert.Equal(t, "v"+oldKubernetes, s.Kubelet)
	assert.Equal(t, "version: 1.36.3\n", s.Files["/var/lib/kubelet/config.yaml"].Content, "the kubelet's configuration went back with it")
}

// Nothing was started by a runtime that never came up, and nothing can be stopped through it:
// the old one is put back without the wait for sandboxes to end.
func TestARuntimeThatDoesNotComeUpGivesWayToTheOldOne(t *testing.T) {
	const unit = "containerd.service"
	b := worker(t)
	before := comparable(b.host.Snapshot())
	broken := func() bool { return b.host.State.Packages["containerd"].Version == newRuntime+"-1" }
	b.host.FailIf = func(label string) error {
		if label == "restart "+unit && broken() {
			b.host.Active[unit] = false
			return errors.New("injected: " + label)
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, upgrade.StepRestartUnit, rec.FailedStep)
	assert.True(t, rec.RolledBack, rec.Message)
	assert.Empty(t, rec.NotUndone)
	assert.Equal(t, before, comparable(b.host.Snapshot()))
	require.Equal(t, upgrade.StepStopSandboxes, rec.Rollback[0].Kind)
	assert.Contains(t, rec.Rollback[0].Message, "does not answer")
}

// One that came up has perhaps started pods: that they are left behind is said.
func TestSandboxesOfARuntimeThatCameUpAreInsistedOn(t *testing.T) {
	b := worker(t)
	again := b.failWhileForward(16, "restart kubelet.service")
	b.host.FailIf = func(label string) error {
		if err := again(label); err != nil {
			b.host.Active["containerd.service"], b.host.Active[kubeletUnit] = false, false
			return err
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.False(t, rec.RolledBack)
	assert.Contains(t, strings.Join(rec.NotUndone, "\n"), "StopSandboxes")
}

func TestARollbackThatFailsSaysSo(t *testing.T) {
	b := worker(t)
	b.host.FailIf = func(label string) error {
		if label == "restart kubelet.service" {
			b.host.Active["kubelet.service"] = false
			return errors.New("injected: " + label)
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.False(t, rec.RolledBack)
	assert.Contains(t, strings.Join(rec.NotUndone, "\n"), "RestartUnit")
	assert.True(t, b.host.Snapshot().Packages["kubelet"].Held, "holds are restored on every exit")
}

func TestAWayBackIsInReverse(t *testing.T) {
	b := worker(t)
	b.host.FailIf = b.failWhileForward(17, "probe sandbox")
	rec := b.finish()
	var kinds []upgrade.StepKind
	for _, s := range rec.Rollback {
		kinds = append(kinds, s.Kind)
	}
	assert.Equal(t, []upgrade.StepKind{
		upgrade.StepStopSandboxes,                                                         // those of the new runtime
		upgrade.StepUnholdPackages, upgrade.StepInstallPackages, upgrade.StepHoldPackages, // kubelet, kubectl
		upgrade.StepInstallPackages,                      // containerd
		upgrade.StepWriteConfig,                          // drop-in
		upgrade.StepWriteConfig, upgrade.StepWriteConfig, // what kubeadm rewrote
		upgrade.StepUnholdPackages, upgrade.StepInstallPackages, upgrade.StepHoldPackages, // kubeadm
		upgrade.StepSwitchSource, //
		upgrade.StepReloadUnits, upgrade.StepRestartUnit, upgrade.StepRestartUnit, upgrade.StepVerify,
	}, kinds)
}
