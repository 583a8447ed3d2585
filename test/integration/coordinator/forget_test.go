package coordinator

import (
	"context"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyItsOwnGrantForgetsALostHost(t *testing.T) {
	w := fleetOfThree(t)
	lost := make(chan struct{})
	w.hosts["w1"].set(func(h *host) { h.Working = lost })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 works", func() bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	w.hosts["w1"].set(func(h *host) { h.deaf, h.Ready = true, false })
	w.annotate("w1", v1alpha1.AnnotationForget, "of-another-time")
	time.Sleep(time.Second)
	slot := w.slot("w1")
	require.NotNil(t, slot, "another grant's word ends nothing")

	w.annotate("w1", v1alpha1.AnnotationForget, slot.GrantID)
	w.until("the slot has ended", func() bool { return w.slot("w1") == nil })
	m := w.machine("w1")
	require.NotNil(t, m.Status.RolloutFailure)
	assert.Equal(t, "Forgotten", m.Status.RolloutFailure.Reason)
	require.Len(t, m.Status.History, 1)
	assert.Equal(t, slot.GrantID, m.Status.History[0].ID)
	assert.Equal(t, v1alpha1.OperationFailed, m.Status.History[0].State)
	w.until("it says so", func() bool { return w.condition("w1", v1alpha1.ConditionStalled).Reason == "Forgotten" })
	assert.NotEmpty(t, w.node("w1").Annotations[v1alpha1.AnnotationCordonedBy], "a node that is not well is not given back")
	w.kill()
	w.start()
	time.Sleep(2 * time.Second)
	assert.Nil(t, w.slot("w1"), "a new leader does not bring it back")

	close(lost)
	w.hosts["w1"].set(func(h *host) { h.deaf, h.Ready = false, true })
	w.until("the host has come back and its node is given back", func() bool {
		return !w.node("w1").Spec.Unschedulable && w.hosts["w1"].kubeletIs(newK8s)
	})
	w.annotate("w1", v1alpha1.AnnotationRetry, "1")
	w.untilUpToDate("w1")
	assert.Len(t, w.hosts["w1"].RanUnder(), 1, "what it had done all the same is not done again")
}

func (h *host) kubeletIs(version string) bool {
	_, kubelet, _ := h.Node()
	return kubelet == version
}

func TestForgettingLetsADeletedMachineGo(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.Working = make(chan struct{}) })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 works", func() bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	w.hosts["w1"].set(func(h *host) { h.deaf = true })
	require.NoError(t, w.admin.Delete(context.Background(), w.machine("w1")))
	time.Sleep(time.Second)
	require.NotNil(t, w.slot("w1"), "deleting does not end an accepted operation")
	w.annotate("w1", v1alpha1.AnnotationForget, w.slot("w1").GrantID)
	w.until("the Machine is gone", func() bool { return w.machine("w1").Name == "" })
	assert.Nil(t, w.slot("w1"))
}

func TestAnUnacceptedSlotThatIsForgottenIsTakenBack(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.AcceptDelay = time.Hour })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 is granted", func() bool { return w.machine("w1").Status.Grant != nil })
	first := w.slot("w1").GrantID
	w.annotate("w1", v1alpha1.AnnotationForget, first)
	w.until("that slot is gone, and the word does not end the next one", func() bool {
		s := w.slot("w1")
		return s != nil && s.GrantID != first
	})
	assert.Nil(t, w.machine("w1").Status.RolloutFailure, "nothing was changed on the host")
}

func TestAPoolThatLosesAllOfItsMachinesIsPausedAndNotDone(t *testing.T) {
	w := fleetOfThree(t)
	for _, name := range []string{"w1", "w2", "w3"} {
		w.hosts[name].set(func(h *host) { h.Hold = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.pool("new", workerAt(newK8s))
	w.start()
	w.until("all wait for their owners", func() bool {
		return w.condition("w3", v1alpha1.ConditionWaiting).Reason == "HeldByOwner" || w.condition("w3", v1alpha1.ConditionWaiting).Reason == "Held"
	})
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Selector.MatchLabels["pool"] = "wrokers" })
	w.until("the pool says so", func() bool {
		c := w.deploymentCondition("workers", v1alpha1.ConditionProgressing)
		return c.Status == metav1.ConditionFalse && c.Reason == "NoMachines"
	})
	assert.Equal(t, metav1.ConditionTrue, w.deploymentCondition("new", v1alpha1.ConditionProgressing).Status, "one that never had any has lost none")
	for _, name := range []string{"w1", "w2", "w3"} {
		w.hosts[name].set(func(h *host) { h.Hold = false })
	}
	w.until("its machines wait", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "NoMachines" })
	time.Sleep(time.Second)
	assert.Empty(t, w.ledger().Slots)
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Selector.MatchLabels["pool"] = "workers" })
	w.untilUpToDate("w1", "w2", "w3")
}
