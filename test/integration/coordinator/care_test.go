package coordinator

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var inNamespace = client.InNamespace(namespace)

// fleetOfThree is a control plane that is done and three workers that are not.
func fleetOfThree(t *testing.T) *world {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	for _, name := range []string{"w1", "w2", "w3"} {
		w.host(name, "workers", v1alpha1.RoleWorker)
	}
	return w
}

func (w *world) cordon(name string, is bool) {
	n := w.node(name)
	before := n.DeepCopy()
	n.Spec.Unschedulable = is
	require.NoError(w.t, w.admin.Patch(context.Background(), n, client.MergeFrom(before)))
}

func allowTwo(d *v1alpha1.MachineDeployment) {
	d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: ptr(intstr.FromInt32(2))}}
}

func TestAForeignCordonIsCountedDrainedAndStillThereAtTheEnd(t *testing.T) {
	w := fleetOfThree(t)
	w.cordon("w2", true)
	w.pod("app", "w2", true)
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("it is left alone, and says why", func() bool { return w.condition("w2", v1alpha1.ConditionWaiting).Reason == "ForeignCordon" })
	assert.Empty(t, w.ledger().Slots)
	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{CordonedMachines: "Include"}}
	})
	w.untilUpToDate("w2")
	assert.False(t, w.podExists("app"), "the pods were evicted all the same")
	assert.True(t, w.node("w2").Spec.Unschedulable, "the cordon of someone else stays")
	assert.Empty(t, w.node("w2").Annotations[v1alpha1.AnnotationCordonedBy], "and was never marked as ours")
	w.until("the others wait and say for whom", func() bool {
		c := w.condition("w1", v1alpha1.ConditionWaiting)
		return c.Reason == "BudgetExhausted" && strings.Contains(c.Message, "w2 cordoned by someone else")
	})
	assert.Empty(t, w.hosts["w1"].RanUnder())

	w.edit("workers", allowTwo)
	w.untilUpToDate("w1", "w3")
	assert.True(t, w.node("w2").Spec.Unschedulable)
}

// drainsAlone has w1 drain, which does not end until its pods may, and no other machine go.
func drainsAlone(t *testing.T) *world {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.stuckPods = true })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = true })
	}
	w.pod("app", "w1", true)
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 drains", func() bool { return w.node("w1").Spec.Unschedulable })
	return w
}

func TestACordonWhoseMarkerAPersonTakesOffDuringTheDrainIsTheirs(t *testing.T) {
	w := drainsAlone(t)
	n := w.node("w1")
	before := n.DeepCopy()
	delete(n.Annotations, v1alpha1.AnnotationCordonedBy)
	require.NoError(t, w.admin.Patch(context.Background(), n, client.MergeFrom(before)))
	w.until("it is noticed", func() bool { return w.node("w1").Annotations[v1alpha1.AnnotationFoundCordonedBy] != "" })
	w.hosts["w1"].set(func(h *host) { h.stuckPods = false })
	w.untilUpToDate("w1")
	w.until("nothing of ours is left on the node", func() bool { return len(w.node("w1").Annotations) == 0 })
	assert.True(t, w.node("w1").Spec.Unschedulable, "the cordon stays")
	assert.NotContains(t, w.node("w1").Labels, corev1.LabelNodeExcludeBalancers)
	assert.Len(t, w.hosts["w1"].RanUnder(), 1)
}

func TestAPersonsUncordonThatTakesTheMarkerTooEndsTheDrain(t *testing.T) {
	w := drainsAlone(t)
	n := w.node("w1")
	before := n.DeepCopy()
	delete(n.Annotations, v1alpha1.AnnotationCordonedBy)
	n.Spec.Unschedulable = false
	require.NoError(t, w.admin.Patch(context.Background(), n, client.MergeFrom(before)))
	w.until("the slot is given back", func() bool { return w.slot("w1") == nil && w.machine("w1").Status.RolloutFailure != nil })
	assert.Equal(t, "Uncordoned", w.machine("w1").Status.RolloutFailure.Reason)
	assert.False(t, w.node("w1").Spec.Unschedulable, "it is not cordoned again")
	w.until("nothing of ours is left on the node", func() bool { return len(w.node("w1").Annotations) == 0 })
	assert.Empty(t, w.hosts["w1"].RanUnder())
}

func TestAPersonsUncordonDuringTheDrainEndsItForAWhile(t *testing.T) {
	w := drainsAlone(t)
	w.cordon("w1", false)
	w.until("the slot is given back", func() bool { return w.slot("w1") == nil && w.machine("w1").Status.RolloutFailure != nil })
	n, f := w.node("w1"), w.machine("w1").Status.RolloutFailure
	assert.False(t, n.Spec.Unschedulable, "it is not cordoned again")
	assert.Empty(t, n.Annotations[v1alpha1.AnnotationCordonedBy])
	assert.Equal(t, "Uncordoned", f.Reason)
	require.NotNil(t, f.NextRetryTime)
	w.until("an event tells", func() bool { return w.hasEvent("w1", "Uncordoned") })
	w.until("and the machine waits", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "RetryLater" })
}

func TestAPersonsUncordonDuringTheWorkIsLeftAloneAndSoIsALaterCordon(t *testing.T) {
	w := fleetOfThree(t)
	release := make(chan struct{})
	w.hosts["w1"].set(func(h *host) { h.Working = release })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 works", func() bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	w.cordon("w1", false)
	w.until("the machine is not ready, and says why", func() bool {
		c := w.condition("w1", v1alpha1.ConditionReady)
		return c.Status == metav1.ConditionFalse && c.Reason == "Uncordoned"
	})
	w.until("an event tells", func() bool { return w.hasEvent("w1", "Uncordoned") })
	w.until("the marker is gone", func() bool { return w.node("w1").Annotations[v1alpha1.AnnotationCordonedBy] == "" })
	assert.False(t, w.node("w1").Spec.Unschedulable, "it is not cordoned again")

	w.cordon("w1", true)
	close(release)
	w.untilUpToDate("w1")
	assert.True(t, w.node("w1").Spec.Unschedulable, "the person's own cordon stays")
	assert.Len(t, w.hosts["w1"].RanUnder(), 1)
}

func (w *world) hasEvent(machine, reason string) bool {
	list := &eventsv1.EventList{}
	require.NoError(w.t, w.admin.List(context.Background(), list))
	return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Name == machine && e.Reason == reason && e.EventTime.After(w.began)
	})
}

func TestAbortGivesAnUnacceptedSlotBackAndSaysWhyUntilResume(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.stuckPods = true })
	w.pod("app", "w1", true)
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 drains", func() bool { return w.node("w1").Spec.Unschedulable })
	_, errs := w.refitOK("abort", "workers", "--reason", "bad kernel")
	assert.Contains(t, errs, "machine w1 has a place and has not begun: it is taken back")
	w.until("the slot is given back", func() bool { return len(w.ledger().Slots) == 0 && !w.node("w1").Spec.Unschedulable })
	w.until("the pool says why", func() bool {
		c := w.deploymentCondition("workers", v1alpha1.ConditionProgressing)
		return c.Reason == "Aborted" && strings.Contains(c.Message, "bad kernel")
	})
	w.hosts["w1"].set(func(h *host) { h.stuckPods = false })
	w.refitOK("resume", "workers")
	w.untilUpToDate("w1", "w2", "w3")
	w.until("the pool is done", func() bool {
		return w.deploymentCondition("workers", v1alpha1.ConditionProgressing).Reason == "Complete"
	})
}

func TestPauseStopsGrantsAndGivesAnUnacceptedSlotBack(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.stuckPods = true })
	w.hosts["w2"].set(func(h *host) { h.Hold = true })
	w.hosts["w3"].set(func(h *host) { h.Hold = true })
	w.pod("app", "w1", true)
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 drains", func() bool { return w.node("w1").Spec.Unschedulable })
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true })
	w.until("the slot is given back", func() bool { return len(w.ledger().Slots) == 0 && !w.node("w1").Spec.Unschedulable })
	w.until("the machines say so", func() bool { return w.machine("w2").Status.Phase == v1alpha1.PhasePaused })
	time.Sleep(500 * time.Millisecond)
	assert.Empty(t, w.ledger().Slots)
	for _, h := range w.hosts {
		h.set(func(h *host) { h.stuckPods, h.Hold = false, false })
	}
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = false })
	w.untilUpToDate("w1", "w2", "w3")
}

func TestAnUnacceptedGrantIsVoidedBeforeTheSlotGoes(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.AcceptDelay = time.Hour })
	w.hosts["w2"].set(func(h *host) { h.Hold = true })
	w.hosts["w3"].set(func(h *host) { h.Hold = true })
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 is granted", func() bool { return w.machine("w1").Status.Grant != nil })
	grant := w.machine("w1").Status.Grant
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true })
	w.until("the grant is void and the slot gone", func() bool {
		g := w.machine("w1").Status.Grant
		return g != nil && g.Void && g.ID == grant.ID && g.Epoch > grant.Epoch && w.slot("w1") == nil
	})
	assert.False(t, w.node("w1").Spec.Unschedulable)
}

func TestTheStopSwitchHaltsEveryGrant(t *testing.T) {
	w := fleetOfThree(t)
	require.NoError(t, w.admin.Create(context.Background(), &v1alpha1.Ledger{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.LedgerName}, Spec: v1alpha1.LedgerSpec{Stopped: true},
	}))
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 says why", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "Stopped" })
	assert.Empty(t, w.ledger().Slots)
	out, _ := w.refitOK("why", "w1")
	assert.Regexp(t, `(?m)^machine w1 \(pool workers\): Waiting, since .+\nStopped: `, out)
	w.refitOK("resume", "--all")
	w.untilUpToDate("w1", "w2", "w3")
}

func TestAFailureGivesTheNodeBackAndPausesThePoolUntilRetry(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.Fail = true })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 has failed", func() bool { return w.machine("w1").Status.RolloutFailure != nil && w.slot("w1") == nil })
	for _, other := range []string{"w2", "w3"} {
		w.hosts[other].set(func(h *host) { h.Hold = false })
	}
	w.until("the node is well and is given back", func() bool { return !w.node("w1").Spec.Unschedulable })
	w.until("the phase is Failed", func() bool { return w.machine("w1").Status.Phase == v1alpha1.PhaseFailed })
	w.until("Stalled says what failed", func() bool { return w.condition("w1", v1alpha1.ConditionStalled).Reason == "VerifyFailed" })
	assert.Contains(t, w.condition("w1", v1alpha1.ConditionStalled).Message, "kubectl refit retry w1")
	m := w.machine("w1")
	assert.Equal(t, "RolledBack", m.Status.RolloutFailure.Class)
	require.Len(t, m.Status.History, 1)
	assert.Equal(t, v1alpha1.OperationFailed, m.Status.History[0].State)
	w.until("the others wait", func() bool { return w.condition("w2", v1alpha1.ConditionWaiting).Reason == "FailureThresholdReached" })
	assert.Contains(t, w.condition("w2", v1alpha1.ConditionWaiting).Message, "w1 (VerifyFailed)")
	time.Sleep(time.Second)
	assert.Len(t, w.hosts["w1"].RanUnder(), 1, "it is not tried again by itself")
	assert.Empty(t, w.hosts["w2"].RanUnder())

	w.hosts["w1"].set(func(h *host) { h.Fail = false })
	w.annotate("w1", v1alpha1.AnnotationRetry, "1")
	w.untilUpToDate("w1", "w2", "w3")
	assert.Nil(t, w.machine("w1").Status.RolloutFailure)
	assert.Len(t, w.hosts["w1"].RanUnder(), 2)
}

func TestANewSpecClearsAFailure(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.Fail = true })
	w.hosts["w2"].set(func(h *host) { h.Hold = true })
	w.hosts["w3"].set(func(h *host) { h.Hold = true })
	w.pool("workers", workerAt("v1.37.1"))
	w.start()
	w.until("w1 has failed", func() bool { return w.machine("w1").Status.RolloutFailure != nil && w.slot("w1") == nil })
	for _, h := range w.hosts {
		h.set(func(h *host) { h.Fail, h.Hold = false, false })
	}
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Versions.Kubelet = newK8s })
	w.untilUpToDate("w1", "w2", "w3")
}

func TestABlockedDrainGivesTheNodeBackAndLetsTheOthersGo(t *testing.T) {
	w := fleetOfThree(t)
	w.pod("stuck", "w1", true)
	finalizers := func(list string) {
		stuck := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stuck"}}
		_ = w.admin.Patch(context.Background(), stuck, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+list+`}}`)))
	}
	finalizers(`["refit.test/holds"]`)
	t.Cleanup(func() { finalizers("null") })
	w.pool("workers", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Drain = &v1alpha1.DrainSpec{Timeout: &metav1.Duration{Duration: 2 * time.Second}}
	})
	w.start()
	w.untilUpToDate("w2", "w3")
	w.until("w1 is given back", func() bool { // on a busy machine its plan is ready only after the others'
		return w.machine("w1").Status.RolloutFailure != nil && w.slot("w1") == nil && !w.node("w1").Spec.Unschedulable
	})
	f := w.machine("w1").Status.RolloutFailure
	require.NotNil(t, f)
	assert.Equal(t, "DrainBlocked PodsTerminating", f.Class+" "+f.Reason)
	assert.Contains(t, f.Message, "default/stuck")
	require.NotNil(t, f.NextRetryTime)
	assert.EqualValues(t, 1, f.Attempts, "the retry time that was announced is kept")
	w.until("it says when it is tried again", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "RetryLater" })
	assert.True(t, w.podExists("stuck"))
	assert.Empty(t, w.hosts["w1"].RanUnder(), "nothing on the host changes before the drain has succeeded")
	finalizers("null")
	w.annotate("w1", v1alpha1.AnnotationRetry, "now")
	w.untilUpToDate("w1")
}

func TestAMachineThatIsDownGoesFirstAndNoHealthyOneIsTakenDown(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w3"].set(func(h *host) { h.Ready = false })
	w.until("w3 is down", func() bool { return w.node("w3").Status.Conditions[0].Status == corev1.ConditionFalse })
	watcher := w.watch()
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.untilUpToDate("w1", "w2", "w3")
	watcher.end()
	require.NotEmpty(t, watcher.grantOrder)
	assert.Equal(t, "w3", watcher.grantOrder[0])
	assert.Equal(t, 1, watcher.mostAway)
}

func TestTheNextMachineWaitsUntilTheLastOneIsHealthy(t *testing.T) {
	w := fleetOfThree(t)
	for _, h := range w.hosts {
		h.set(func(h *host) { h.Sick = true })
	}
	w.pool("workers", workerAt(newK8s))
	w.start()
	var first string
	w.until("one machine is being verified", func() bool {
		for _, s := range w.ledger().Slots {
			first = s.Machine
			return s.State == v1alpha1.SlotVerifying
		}
		return false
	})
	w.until("it says what is not well", func() bool { return w.condition(first, v1alpha1.ConditionHealthy).Status == metav1.ConditionFalse })
	time.Sleep(3 * time.Second)
	require.Len(t, w.ledger().Slots, 1)
	assert.True(t, w.node(first).Spec.Unschedulable, "an unwell node is not given back")
	for _, h := range w.hosts {
		h.set(func(h *host) { h.Sick, h.Ready = false, true })
	}
	w.untilUpToDate("w1", "w2", "w3")
}

func TestControlPlanesGoOneAtATimeWhateverTheDeploymentSays(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"cp1", "cp2", "cp3"} {
		w.host(name, "cp", v1alpha1.RoleControlPlane)
	}
	watcher := w.watch()
	w.pool("cp", planeAt(newK8s), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: ptr(intstr.FromInt32(3))}}
	})
	w.start()
	w.untilUpToDate("cp1", "cp2", "cp3")
	watcher.end()
	assert.Equal(t, 1, watcher.mostAway)
	assert.Equal(t, "cp1", watcher.grantOrder[0], "the first of the hop")
}

func TestAFieldThatSomeoneElseOwnsIsAnOverride(t *testing.T) {
	w := fleetOfThree(t)
	ctx := context.Background()
	m := w.machine("w2")
	require.NoError(t, w.admin.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"versions":{"kubelet":"`+oldK8s+`"}}}`)), client.FieldOwner("kubectl-edit")))
	w.pool("workers", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Versions.ContainerRuntime = &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "2.1.4"}
	})
	w.start()
	w.untilUpToDate("w1", "w2", "w3")
	w.until("the override is named", func() bool { return w.condition("w2", v1alpha1.ConditionOverridden).Status == metav1.ConditionTrue })
	c := w.condition("w2", v1alpha1.ConditionOverridden)
	assert.Contains(t, c.Message, "spec.versions.kubelet (owned by kubectl-edit)")
	assert.Equal(t, oldK8s, w.hosts["w2"].Kubelet)
	assert.Equal(t, "2.1.4", w.hosts["w2"].Runtime, "the rest of the template is written all the same")
	assert.Empty(t, w.condition("w1", v1alpha1.ConditionOverridden).Type)

	require.Contains(t, c.Message, "kubectl refit release w2 -n "+namespace)
	w.refitOK("release", "w2")
	w.until("the deployment writes what was released", func() bool {
		v := w.machine("w2").Spec.Versions
		return v != nil && string(v.Kubelet) == newK8s
	})
}

func TestTwoDeploymentsThatMatchOneMachineBothRefuse(t *testing.T) {
	w := fleetOfThree(t)
	w.pool("workers", workerAt(newK8s))
	w.pool("other", workerAt("v1.37.1"), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Selector.MatchLabels = map[string]string{"pool": "workers"}
	})
	w.start()
	for _, pair := range [][2]string{{"workers", "other"}, {"other", "workers"}} {
		w.until(pair[0]+" names "+pair[1], func() bool {
			return w.deploymentCondition(pair[0], v1alpha1.ConditionConflict).Status == metav1.ConditionTrue
		})
		assert.Contains(t, w.deploymentCondition(pair[0], v1alpha1.ConditionConflict).Message, pair[1])
	}
	time.Sleep(500 * time.Millisecond)
	assert.Nil(t, w.machine("w1").Spec.Versions, "neither template was written")
	require.NoError(t, w.admin.Delete(context.Background(), &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}))
	w.untilUpToDate("w1", "w2", "w3")
}

func TestADeletedMachineWaitsForItsOperationAndGivesTheNodeBack(t *testing.T) {
	w := fleetOfThree(t)
	w.hosts["w1"].set(func(h *host) { h.WorkTime = 4 * time.Second })
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 works", func() bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	require.NoError(t, w.admin.Delete(context.Background(), w.machine("w1")))
	time.Sleep(time.Second)
	assert.NotNil(t, w.slot("w1"), "an accepted operation is never revoked")
	w.until("the Machine is gone", func() bool { return w.machine("w1").Name == "" })
	assert.Len(t, w.hosts["w1"].RanUnder(), 1)
	assert.False(t, w.node("w1").Spec.Unschedulable)
	assert.Nil(t, w.slot("w1"))
}

func TestEachAgentHasOneObject(t *testing.T) {
	w := fleetOfThree(t)
	w.start()
	w.until("access is given", func() bool {
		b := &rbacv1.RoleBinding{}
		err := w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "refit-machine-w2"}, b)
		return err == nil && len(b.OwnerReferences) == 1
	})
	ctx, w1 := context.Background(), w.hosts["w1"].Client
	w.until("the agent reads its own", func() bool {
		return w1.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "w1"}, &v1alpha1.Machine{}) == nil
	})
	assert.True(t, apierrors.IsForbidden(w1.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "w2"}, &v1alpha1.Machine{})))
	assert.True(t, apierrors.IsForbidden(w1.List(ctx, &v1alpha1.MachineList{}, inNamespace)))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"versions":{"kubelet":"v9.9.9"}}}`))
	assert.True(t, apierrors.IsForbidden(w1.Status().Patch(ctx, w.machine("w2"), patch)))
	assert.True(t, apierrors.IsForbidden(w1.Patch(ctx, w.machine("w1"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`)))))
}
