package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// strategy changes how a pool is rolled.
func (c *cluster) strategy(pool string, edit func(*v1alpha1.RolloutStrategy)) {
	d := &v1alpha1.MachineDeployment{}
	require.NoError(c.t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: pool}, d))
	d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{}}
	edit(d.Spec.Strategy)
	require.NoError(c.t, c.api.Update(context.Background(), d))
}

func (c *cluster) slotOf(name string) v1alpha1.SlotState {
	for _, s := range c.ledger().Slots {
		if s.Machine == name {
			return s.State
		}
	}
	return ""
}

// nightly is a fleet whose workers may be worked on from 22:00 to 23:00 only; it is midnight.
func nightly(t *testing.T) *cluster {
	c := threeMachines(t, &fault{})
	c.strategy("workers", func(s *v1alpha1.RolloutStrategy) {
		s.RollingUpdate.Windows = []v1alpha1.Window{{Schedule: "0 22 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	})
	return c
}

func (c *cluster) clock(hour, minute int) {
	c.now = time.Date(c.now.Year(), c.now.Month(), c.now.Day(), hour, minute, 0, 0, time.UTC)
}

func TestWorkersWaitForTheirWindow(t *testing.T) {
	c := nightly(t)
	c.run()
	w1, w2 := c.hosts[1], c.hosts[2]
	assert.Equal(t, after, c.hosts[0].kubelet, "the control plane has no window")
	assert.Empty(t, append(w1.runs, w2.runs...))
	assert.Contains(t, c.line("w1"), "OutsideWindow")
	result, err := c.coordinator.rollout.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	require.NoError(t, err)
	assert.Equal(t, time.Date(2030, 1, 1, 22, 0, 0, 0, time.UTC), c.now.Add(result.RequeueAfter), "it looks again at the very opening")
	c.clock(22, 0)
	c.run()
	assert.Len(t, w1.runs, 1)
	assert.Len(t, w2.runs, 1)
}

func TestAWindowThatClosesBeforeTheWorkBeginsTakesTheSlotBack(t *testing.T) {
	c := nightly(t)
	c.run()
	c.clock(22, 0)
	w1 := c.hosts[1]
	c.roundsUntil("the drain of w1", func() bool { return c.slotOf("w1") == v1alpha1.SlotReserved })
	c.clock(22, 58)
	result, err := c.coordinator.machines.Reconcile(t.Context(), request("w1"))
	require.NoError(t, err)
	assert.Less(t, result.RequeueAfter, 3*time.Minute, "the close is not slept through")
	c.clock(23, 0)
	c.run()
	assert.Empty(t, w1.runs)
	assert.Empty(t, c.ledger().Slots)
	assert.False(t, c.node("w1").Spec.Unschedulable)
	c.now = c.now.Add(23 * time.Hour)
	c.run()
	assert.Len(t, w1.runs, 1, "and it goes in the next one")
	assert.Len(t, c.hosts[2].runs, 1)
}

func TestWorkThatHasBegunEndsAfterTheWindow(t *testing.T) {
	c := nightly(t)
	c.run()
	c.clock(22, 0)
	w1, w2 := c.hosts[1], c.hosts[2]
	w1.lasts = 8
	c.roundsUntil("the work on w1", func() bool { return c.slotOf("w1") == v1alpha1.SlotAccepted && w1.working > 0 })
	c.clock(23, 30)
	c.run()
	assert.Len(t, w1.runs, 1)
	assert.Equal(t, after, w1.kubelet)
	assert.Equal(t, before, w2.kubelet, "the next one waits")
	assert.Empty(t, c.ledger().Slots)
}
