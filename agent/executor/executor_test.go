package executor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestAWorkerRunsTheNewVersionsAfterItsPlan(t *testing.T) {
	b := worker(t)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)

	s := b.host.Snapshot()
	assert.Equal(t, "v"+newKubernetes, s.Kubelet)
	assert.Equal(t, newRuntime, s.Runtime)
	assert.Equal(t, newRuntime, s.SandboxRuntime, "no sandbox of the old runtime is left")
	assert.Equal(t, "http://mirror/v1.37/deb/", s.Sources[sourceFile])
	assert.Equal(t, "maxPods: 200\n", s.Files[dropIn].Content)
	assert.True(t, s.Packages["kubelet"].Held && s.Packages["kubeadm"].Held && s.Packages["kubectl"].Held)
	assert.False(t, s.Packages["containerd"].Held, "what was not on hold is not on hold after")
	for effect, times := range s.Effects {
		assert.Equal(t, 1, times, effect)
	}
}

func TestAControlPlaneRunsTheNewVersionAfterItsHop(t *testing.T) {
	b := controlPlane(t)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	s := b.host.Snapshot()
	assert.Equal(t, "v"+newKubernetes, s.Pods["kube-apiserver"])
	assert.Equal(t, "v"+newKubernetes, s.Kubelet)
}

func TestAControlPlaneAtTheTargetIsNotUpgradedAgain(t *testing.T) {
	b := controlPlane(t)
	b.host.WithControlPlane("v" + newKubernetes)
	b.op.Plan.Steps[0].Expect.ControlPlane = ""
	b.op.Plan = sealed(b.op.Plan)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Zero(t, b.host.Snapshot().Effects["kubeadm v"+newKubernetes])
	assert.Contains(t, rec.Steps[4].Message, "already")
}

func TestKubeadmIsRunTwiceAtMost(t *testing.T) {
	b := controlPlane(t)
	b.host.FailIf = failing("kubeadm upgrade v" + newKubernetes)
	rec := b.finish()
	assert.Equal(t, "ControlPlaneUpgradeFailed", rec.Reason)
	assert.Equal(t, 2, count(b.host.Log, "kubeadm upgrade v"+newKubernetes))
	assert.True(t, rec.RolledBack, "the control plane never moved: %s", rec.Message)
}

// kubeadm replaces the API server and then needs it, for its config maps and the addons.
// One that ends with an error there is run once more when the API server is up again.
func TestAKubeadmThatFailsAfterTheStaticPodsIsRunAgainWhenTheyAnswer(t *testing.T) {
	b := controlPlane(t)
	runs, away := 0, 0
	b.host.FailIf = func(label string) error {
		switch {
		case label == "kubeadm upgrade v"+newKubernetes && runs == 0:
			runs, away = 1, 20
			b.host.WithControlPlane("v" + newKubernetes)
			return errors.New("uploading the configuration: connection refused")
		case label == "kubeadm upgrade v"+newKubernetes:
			if runs++; away > 0 {
				return errors.New("connection refused")
			}
		case label == "api server version" && away > 0:
			away--
			return errors.New("connection refused")
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, 2, runs)
	s := b.host.Snapshot()
	assert.Equal(t, 1, s.Effects["kubeadm v"+newKubernetes], "the second run came about")
	assert.Equal(t, "version: "+newKubernetes+"\n", s.Files["/var/lib/kubelet/config.yaml"].Content, "what comes after the static pods is done")
	assert.Empty(t, rec.Steps[4].Message)
}

// The static pods are the first thing that kubeadm does and not the last.
func TestAKubeadmThatDoesNotComeToItsEndHasFailedWhateverRuns(t *testing.T) {
	b := controlPlane(t)
	b.host.FailIf = b.movesPodsAndFails()
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "ControlPlaneUpgradeFailed", rec.Reason)
	assert.Contains(t, rec.Message, "the static pods run v"+newKubernetes)
	assert.Contains(t, rec.Message, "connection refused", "what kubeadm said is kept")
	assert.Contains(t, rec.Message, "a retry runs it again")
	assert.Equal(t, 2, count(b.host.Log, "kubeadm upgrade v"+newKubernetes), "once more, never in a loop")
	assert.Equal(t, "v"+newKubernetes, b.host.Snapshot().Pods["kube-apiserver"])
	assert.NotNil(t, b.host.Snapshot().Unfinished)
}

func (b *bench) movesPodsAndFails() func(string) error {
	return func(label string) error {
		if label != "kubeadm upgrade v"+newKubernetes {
			return nil
		}
		b.host.WithControlPlane("v" + newKubernetes)
		return errors.New("uploading the configuration: connection refused")
	}
}

// The next operation finds the static pods at the target, and finishes what the one before could not.
func TestTheNextOperationFinishesKubeadmsWork(t *testing.T) {
	b := controlPlane(t)
	b.host.FailIf = b.movesPodsAndFails()
	require.Equal(t, journal.Failed, b.finish().State)

	b.host.FailIf = nil
	b.op.ID = "grant-2"
	b.op.Plan.Steps[0].Expect.ControlPlane = "v" + newKubernetes
	b.op.Plan = sealed(b.op.Plan)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	s := b.host.Snapshot()
	assert.Equal(t, 1, s.Effects["kubeadm v"+newKubernetes])
	assert.Nil(t, s.Unfinished)
	assert.Equal(t, "version: "+newKubernetes+"\n", s.Files["/var/lib/kubelet/config.yaml"].Content)
}

func TestARebootIsProvenByANewBoot(t *testing.T) {
	b := rebooting(t)
	_, _, crash := b.run()
	require.Equal(t, "rebooting", crash)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, 1, b.host.Snapshot().Effects["reboot"])
}

func TestARebootThatDoesNotHappenIsAskedForTwiceAndFails(t *testing.T) {
	b := rebooting(t)
	b.host.RebootIgnored = true
	rec := b.finish()
	assert.Equal(t, "RebootFailed", rec.Reason)
	assert.Equal(t, 2, count(b.host.Log, "reboot"))
}

// A host without a boot id of its own, such as some containers, comes back with the same one.
func TestAHostThatComesBackInTheSameBootIsNotRebootedForEver(t *testing.T) {
	b := rebooting(t)
	b.host.SameBootID = true
	boots := 0
	for range 10 {
		if _, _, crash := b.run(); crash != "rebooting" {
			break
		}
		boots++
	}
	assert.Equal(t, 2, boots)
	rec := b.finish()
	assert.Equal(t, "RebootFailed", rec.Reason, rec.Message)
}

// As on a real host: the reboot is asked for, systemd stops the executor first, and then
// the host comes back.
func TestARebootStopsItsExecutorAndIsFollowedInTheNextBoot(t *testing.T) {
	b := rebooting(t)
	b.host.RebootIgnored = true
	ctx, stop := context.WithCancel(context.Background())
	b.host.FailIf = func(label string) error {
		if label == "reboot" {
			stop()
		}
		return nil
	}
	rec, err := b.executor().Run(ctx, b.op)
	require.ErrorIs(t, err, ErrStopped)
	assert.Equal(t, "boot-1", rec.Current().BootID)
	b.host.PowerLoss()
	rec = b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, 1, count(b.host.Log, "reboot"))
}

func TestAStopDuringARebootCounts(t *testing.T) {
	b := rebooting(t)
	b.host.RebootIgnored = true
	for range 3 {
		ctx, stop := context.WithCancel(context.Background())
		b.host.FailIf = func(label string) error {
			if label == "reboot" {
				stop() // systemd stops everybody
			}
			return nil
		}
		_, _ = b.executor().Run(ctx, b.op)
		stop()
	}
	assert.Equal(t, 2, count(b.host.Log, "reboot"))
}

func TestAKnownOperationIsAnsweredWithItsOutcome(t *testing.T) {
	b := worker(t)
	first := b.finish()
	calls := b.host.Calls()
	b.op.Plan = rebootPlan() // whatever is asked under a known id
	again, err, _ := b.run()
	require.NoError(t, err)
	assert.Equal(t, first.State, again.State)
	assert.Equal(t, first.Operation.Plan.Hash, again.Operation.Plan.Hash)
	assert.Equal(t, calls, b.host.Calls(), "nothing was done")
}

func TestAnotherOperationWaitsForTheOpenOne(t *testing.T) {
	b := worker(t)
	b.host.CrashAt = 60
	_, _, crash := b.run()
	require.NotEmpty(t, crash)
	b.host.CrashAt = 0
	b.op.ID = "grant-2"
	_, err, _ := b.run()
	require.ErrorContains(t, err, "grant-1 is open")
}

func TestADamagedJournalStopsSafely(t *testing.T) {
	b := worker(t)
	b.host.CrashAt = 120
	_, _, crash := b.run()
	require.NotEmpty(t, crash)
	b.host.CrashAt = 0
	path := journal.NewStore(b.dir).Path("grant-1")
	b.fs.Corrupt(path, func(d []byte) []byte { d[len(d)/2] ^= 1; return d })
	before := b.host.Snapshot()

	_, err, _ := b.run()
	var corrupt *journal.CorruptError
	require.ErrorAs(t, err, &corrupt)
	assert.Equal(t, path, corrupt.Path)

	ended, err := b.executor().Resume(context.Background())
	require.ErrorAs(t, err, &corrupt)
	assert.Empty(t, ended)
	assert.Equal(t, before, b.host.Snapshot(), "nothing was run from it")
}

func TestAPackageOfTheOwnersHoldIsNotTouched(t *testing.T) {
	b := worker(t)
	b.host.Files["/etc/refit/hold"] = hostfake.File{Content: "disk swap, ask Ana\n"}
	before := b.host.Snapshot()
	rec := b.finish()
	assert.Equal(t, "HeldByOwner", rec.Reason)
	assert.Contains(t, rec.Message, "disk swap, ask Ana")
	assert.Contains(t, rec.Message, "nothing was changed")
	assert.False(t, rec.RolledBack)
	assert.Equal(t, before, b.host.Snapshot())
}

func TestPreflightRefusesAHostThatMovedSinceThePlan(t *testing.T) {
	for name, tc := range map[string]struct {
		move   func(h *hostfake.Host)
		reason string
	}{
		"another kubelet runs": {func(h *hostfake.Host) { h.State.Kubelet = "v1.36.9" }, "HostChanged"},
		"another package is there": {func(h *hostfake.Host) {
			h.Packages["kubelet"] = hostfake.Package{Version: "1.36.9-1.1", State: "installed"}
		}, "HostChanged"},
		"a staged file was replaced": {func(h *hostfake.Host) { h.Files["/stage/kubelet_1.37.2-1.1.deb"] = hostfake.File{Content: "00"} }, "DigestMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			b := worker(t)
			tc.move(b.host)
			before := comparable(b.host.Snapshot())
			rec := b.finish()
			assert.Equal(t, tc.reason, rec.Reason, rec.Message)
			assert.Equal(t, before, comparable(b.host.Snapshot()))
		})
	}
}

// The plan brings no kubelet, and its reboot would start the one that somebody else has brought.
func TestPreflightRefusesToStartWhatIsNewOnTheDisk(t *testing.T) {
	b := rebooting(t)
	b.host.Packages["kubelet"] = hostfake.Package{Version: "1.38.0-1.1", State: "installed"}
	before := comparable(b.host.Snapshot())
	rec := b.finish()
	assert.Equal(t, "HostChanged", rec.Reason, rec.Message)
	assert.Contains(t, rec.Message, "kubelet v1.38.0 is on disk")
	assert.Equal(t, before, comparable(b.host.Snapshot()))
}

func TestAHostRebootedSinceThePlanNeedsANewOne(t *testing.T) {
	b := rebooting(t)
	b.host.PowerLoss()
	rec := b.finish()
	assert.Equal(t, "HostRebooted", rec.Reason)
}

func TestAHalfConfiguredPackageIsRepairedBeforeTheFirstStep(t *testing.T) {
	b := worker(t)
	b.host.Packages["zlib1g"] = hostfake.Package{Version: "1", State: "half-configured"}
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, "installed", b.host.Snapshot().Packages["zlib1g"].State)
}

// B13: the journal tells live who is waited for, so that a person who looks at a drained
// host knows, and nothing of it stays once the lock is free.
func TestAPackageLockIsWaitedForAndItsHolderNamed(t *testing.T) {
	b := worker(t)
	b.host.Locked = 4 // the first look is for the baseline
	var notes []string
	b.host.FailIf = func(label string) error {
		rec, err := journal.NewStoreFS(b.dir, b.fs).Read(b.op.ID)
		if err == nil && label == "facts" && rec.Steps[0].State == journal.StepBegun {
			notes = append(notes, rec.Steps[0].Message)
		}
		return nil
	}
	rec := b.finish()
	assert.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Empty(t, rec.Steps[0].Message)
	require.Len(t, notes, 4)
	assert.Empty(t, notes[0], "nothing was known before the look")
	for _, note := range notes[1:] {
		assert.Regexp(t, `^waiting for process 2448 \(unattended-upgr\), which holds /var/lib/dpkg/lock-frontend, since 2\d{3}-.*Z$`, note)
	}
}

func TestAPackageLockThatStaysEndsTheOperationWithNothingChanged(t *testing.T) {
	b := worker(t)
	b.host.Locked = 1 << 20
	e := b.executor()
	e.DeadlineCap = 50 * time.Millisecond
	rec, err := e.Run(t.Context(), b.op)
	require.NoError(t, err)
	assert.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "PackageLockHeld", rec.Reason)
	assert.Contains(t, rec.Message, "process 2448 (unattended-upgr)")
	assert.Contains(t, rec.Message, "nothing was changed on the host")
}

func TestAStopLeavesTheJournalOpenAndTheHoldsInPlace(t *testing.T) {
	b := worker(t)
	ctx, stop := context.WithCancel(context.Background())
	b.host.FailIf = func(label string) error {
		if label == "install containerd="+newRuntime+"-1" || label == "install kubectl="+newKubernetes+"-1.1,kubelet="+newKubernetes+"-1.1" {
			stop() // the stop comes amid a transaction, which is let finish
		}
		return nil
	}
	for _, wantStep := range []upgrade.StepKind{upgrade.StepInstallPackages, upgrade.StepInstallPackages} {
		rec, err := b.executor().Run(ctx, b.op)
		require.ErrorIs(t, err, ErrStopped)
		assert.Equal(t, journal.Open, rec.State)
		assert.Equal(t, wantStep, rec.Current().Kind)
		assert.Equal(t, journal.StepDone, rec.Current().State, "the transaction was let finish")
		s := b.host.Snapshot()
		assert.True(t, s.Packages["kubelet"].Held && s.Packages["kubeadm"].Held && s.Packages["kubectl"].Held)
		ctx, stop = context.WithCancel(context.Background())
	}
	ended, err := b.executor().Resume(ctx)
	require.NoError(t, err)
	require.Len(t, ended, 1)
	assert.Equal(t, journal.Successful, ended[0].State, ended[0].Message)
	assert.Equal(t, 1, b.host.Snapshot().Effects["unpack kubelet "+newKubernetes+"-1.1"])
	stop()
}

func TestAStepThatKillsItsExecutorIsNotRunForEver(t *testing.T) {
	b := worker(t)
	b.host.FailIf = func(label string) error {
		if label == "hook raid-check" {
			panic(hostfake.Crash{Point: label})
		}
		return nil
	}
	for range maxAttempts {
		_, _, crash := b.run()
		require.Equal(t, "hook raid-check", crash)
	}
	rec := b.finish()
	assert.Equal(t, "RunHookFailed", rec.Reason)
	assert.Contains(t, rec.Message, "begun 3 times")
}

func TestUnitsAreReleasedBeforeTheFirstStepThatNeedsThem(t *testing.T) {
	b := worker(t)
	installed := b.host.Snapshot().Packages["kubeadm"]
	for point := 1; ; point++ { // the process dies within the first transaction
		b.host.CrashAt = point
		_, _, crash := b.run()
		if crash == "after half of install kubeadm="+newKubernetes+"-1.1" {
			break
		}
		b = worker(t)
	}
	require.NotEqual(t, installed, b.host.Snapshot().Packages["kubeadm"])
	b.host.CrashAt = 0
	released := ""
	e := b.executor()
	e.ReleaseUnits = func() {
		released = b.host.Log[len(b.host.Log)-1]
		require.Equal(t, "installed", b.host.Packages["kubeadm"].State)
	}
	_, err := e.Resume(context.Background())
	require.NoError(t, err)
	assert.NotEmpty(t, released, "the kubelet is let on, and the packages were whole by then")
}

func TestAResumeWithNothingToDoReleasesUnits(t *testing.T) {
	b := worker(t)
	released := 0
	e := b.executor()
	e.ReleaseUnits = func() { released++ }
	ended, err := e.Resume(context.Background())
	require.NoError(t, err)
	assert.Empty(t, ended)
	assert.Equal(t, 1, released)
}

func failing(labels ...string) func(string) error {
	return func(label string) error {
		for _, l := range labels {
			if l == label {
				return errors.New("injected: " + label)
			}
		}
		return nil
	}
}

func count(log []string, label string) int {
	n := 0
	for _, l := range log {
		if l == label {
			n++
		}
	}
	return n
}

// A runtime that was stopped by hand is back when its host is planned: nothing is left to do, and that is no failure.
func TestAPlanWithoutStepsSucceeds(t *testing.T) {
	b := worker(t)
	b.op.Plan = sealed(upgrade.Plan{AssignmentID: "7-abc", Steps: []upgrade.Step{}})
	before := comparable(b.host.Snapshot())
	rec := b.finish()
	assert.Equal(t, journal.Successful, rec.State, rec.Message)
	assert.Equal(t, before, comparable(b.host.Snapshot()))
}
