package executor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// rebootsOnDisk runs what the planner makes of a host that asks for a reboot, with journals where the
// agent reads them; it says whether the host was rebooted.
func rebootsOnDisk(t *testing.T, b *bench, id string, versions ...string) bool {
	t.Helper()
	facts := factsOf(t, b.host)
	facts.Reboot = upgrade.RebootFacts{Required: true, Versions: versions}
	spec := wishFor("")
	spec.OS = &v1alpha1.OSSpec{Reboot: v1alpha1.RebootIfRequired}
	plan, err := upgrade.NewPlan(upgrade.PlanInput{
		Machine: "w1", Spec: spec, Facts: facts, Rebooted: store.New(b.dir).Rebooted(),
		Assignment: v1alpha1.Assignment{ID: id, Type: v1alpha1.OperationReboot, Target: v1alpha1.Target{OS: true}},
	})
	require.NoError(t, err)
	if len(plan.Steps) == 0 {
		return false
	}
	boots := b.host.Boots
	for range 2 { // before the reboot and after it
		var rec journal.Record
		crash, _ := hostfake.Crashes(func() {
			rec, err = New(Config{StateDir: b.dir, Host: b.host.Host(), Poll: 50 * time.Microsecond, DeadlineCap: 2 * time.Second}).
				Run(t.Context(), upgrade.Operation{ID: id, Machine: "w1", Plan: plan})
		})
		if crash == "" {
			require.NoError(t, err)
			require.Equal(t, journal.Successful, rec.State, rec.Message)
		}
	}
	require.Equal(t, boots+1, b.host.Boots)
	return true
}

func TestAHostIsRebootedOnceForEachReason(t *testing.T) {
	b := newBench(t, hostfake.New(oldKubernetes, oldRuntime), rebootPlan())
	assert.True(t, rebootsOnDisk(t, b, "g1", "libc6 1"))
	assert.False(t, rebootsOnDisk(t, b, "g2", "libc6 1"), "the flag stays up")
	assert.True(t, rebootsOnDisk(t, b, "g3", "libc6 2"), "it is up for something newer")
	assert.False(t, rebootsOnDisk(t, b, "g4", "libc6 2"))

	require.NoError(t, store.New(b.dir).SettleReboot()) // the host has stopped asking
	assert.Empty(t, store.New(b.dir).Rebooted())
	assert.True(t, rebootsOnDisk(t, b, "g5", "libc6 2"), "and asks anew, as after a library was put back")
	assert.False(t, rebootsOnDisk(t, b, "g6", "libc6 2"))
}
