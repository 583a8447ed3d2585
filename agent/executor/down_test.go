package executor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const kubeletUnit = "kubelet.service"

// runtimePlan crosses a minor of the runtime under a kubelet that did not run when it was made.
func runtimePlan() upgrade.Plan {
	containerd := change("containerd", oldRuntime+"-1", newRuntime+"-1")
	return sealed(upgrade.Plan{AssignmentID: "6-abc", Type: "Upgrade", Disruption: "Drain", Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Runtime: oldRuntime, Packages: []upgrade.PackageChange{containerd}}},
		{Kind: upgrade.StepStopSandboxes, Unit: kubeletUnit},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{containerd}},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: "containerd.service"},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: kubeletUnit, Down: true},
		{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{RuntimeName: "containerd", Runtime: newRuntime, StartSandbox: true, Packages: []upgrade.PackageChange{containerd}}},
	}})
}

// kubeletDown is a host without pods: nobody would start again what a plan ends.
func kubeletDown(t *testing.T, plan upgrade.Plan) *bench {
	h := hostfake.New(oldKubernetes, oldRuntime)
	h.Active[kubeletUnit], h.Down[kubeletUnit] = false, true
	h.Sandboxes, h.SandboxRuntime = 0, ""
	return newBench(t, h, plan)
}

func TestARuntimeMovesUnderAKubeletThatWasDownBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		staysDown bool
		says      string
	}{
		"and stays down":                {true, "kubelet.service did not run before, and does not now: kubelet.service is not active"},
		"and comes up with its runtime": {false, "kubelet.service did not run before, and does now"},
	} {
		t.Run(name, func(t *testing.T) {
			b := kubeletDown(t, runtimePlan())
			b.host.Down[kubeletUnit] = tc.staysDown
			rec := b.finish()
			require.Equal(t, journal.Successful, rec.State, rec.Message)
			require.Len(t, rec.StillDown(), 1)
			assert.Contains(t, rec.StillDown()[0], tc.says)
			assert.Equal(t, newRuntime, b.host.Snapshot().Runtime)
			assert.Equal(t, []string{kubeletUnit}, rec.Baseline.Down)
		})
	}
}

// Whichever step fails, a kubelet that was down before does not keep the host from being what it was.
func TestAnUndoDoesNotInsistOnWhatWasDownBefore(t *testing.T) {
	for i, effect := range map[int]string{
		2: "install containerd=2.4.2-1", 3: "reload", 4: "restart containerd.service", 7: "probe sandbox",
	} {
		t.Run(fmt.Sprintf("%d %s", i, effect), func(t *testing.T) {
			b := kubeletDown(t, runtimePlan())
			before := comparable(b.host.Snapshot())
			b.host.FailIf = b.failWhileForward(i, effect)
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State)
			assert.True(t, rec.RolledBack, rec.Message)
			assert.Empty(t, rec.NotUndone)
			assert.Contains(t, rec.Message, "injected")
			assert.Contains(t, rec.Message, "what it ran before; kubelet.service did not run before, and does not now")
			assert.Len(t, rec.StillDown(), 1, "it is said once, however often it was tried")
			assert.Equal(t, before, comparable(b.host.Snapshot()))
		})
	}
}

func TestARepairThatFailsLeavesTheUnitAsItWas(t *testing.T) {
	t.Run("a kubelet", func(t *testing.T) {
		plan := workerPlan()
		plan.Steps[0].Expect.Kubelet = ""
		b := kubeletDown(t, sealed(plan))
		b.host.Sources[sourceFile] = "http://mirror/v1.36/deb/"
		rec := b.finish()
		require.Equal(t, journal.Failed, rec.State)
		assert.Equal(t, "UnitNotActive", rec.Reason, "the plan is for this kubelet, and insists on it")
		assert.True(t, rec.RolledBack, rec.Message)
		assert.Equal(t, oldKubernetes+"-1.1", b.host.Snapshot().Packages["kubelet"].Version)
	})
	t.Run("a runtime", func(t *testing.T) {
		patch := change("containerd", oldRuntime+"-1", "1.7.29-1")
		b := newBench(t, hostfake.New(oldKubernetes, oldRuntime), sealed(upgrade.Plan{AssignmentID: "5-abc", Steps: []upgrade.Step{
			{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Kubelet: "v" + oldKubernetes}},
			{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{patch}},
			{Kind: upgrade.StepReloadUnits},
			{Kind: upgrade.StepRestartUnit, Unit: "containerd.service"},
			{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{RuntimeName: "containerd", Runtime: "1.7.29", StartSandbox: true}},
		}}))
		b.host.Active["containerd.service"], b.host.Down["containerd.service"] = false, true
		rec := b.finish()
		require.Equal(t, journal.Failed, rec.State)
		assert.Equal(t, upgrade.StepRestartUnit, rec.FailedStep)
		assert.True(t, rec.RolledBack, rec.Message)
		assert.Contains(t, rec.Message, "containerd.service did not run before, and does not now")
	})
}

// What a plan marks as down may have come up since: then it is to stay up.
func TestAUnitThatCameUpSinceThePlanWasMadeIsInsistedOn(t *testing.T) {
	b := kubeletDown(t, runtimePlan())
	b.host.Active[kubeletUnit] = true
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "UnitNotActive", rec.Reason)
	assert.Empty(t, rec.Baseline.Down)
	assert.False(t, rec.RolledBack, "it ran before, and does not now")
}
