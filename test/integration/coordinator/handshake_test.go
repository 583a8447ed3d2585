package coordinator

import (
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAFleetWalksToANewMinorControlPlaneFirstAndOneAtATime(t *testing.T) {
	w := newWorld(t)
	cp := w.host("cp1", "control-plane", v1alpha1.RoleControlPlane)
	w1 := w.host("w1", "workers", v1alpha1.RoleWorker)
	w2 := w.host("w2", "workers", v1alpha1.RoleWorker)
	w.pool("control-plane", planeAt(oldK8s))
	w.pool("workers", workerAt(oldK8s))
	w.pod("app-1", "w1", true)
	w.pod("app-2", "w2", true)
	w.start()
	w.untilUpToDate("cp1", "w1", "w2")

	watcher := w.watch()
	w.hosts["cp1"].set(func(h *host) { h.Hold = true })
	w.edit("control-plane", func(d *v1alpha1.MachineDeployment) { *d.Spec.Template.Spec.Versions = planeAt(newK8s) })
	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Versions.Kubelet = newK8s
		d.Spec.Template.Spec.Versions.ContainerRuntime = &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "2.1.4"}
	})
	w.until("workers wait for the control plane", func() bool {
		return w.condition("w1", v1alpha1.ConditionUpToDate).Reason == "WaitingForControlPlane"
	})
	assert.Empty(t, watcher.grants, "the owner of the control-plane host holds it")
	w.hosts["cp1"].set(func(h *host) { h.Hold = false })
	w.untilUpToDate("cp1", "w1", "w2")
	watcher.end()

	require.Len(t, watcher.grantOrder, 3)
	assert.Equal(t, "cp1", watcher.grantOrder[0])
	assert.Equal(t, 1, watcher.mostAway, "more machines were away at once than maxUnavailable allows")
	assert.Empty(t, watcher.complaints)
	assert.False(t, w.podExists("app-1") || w.podExists("app-2"), "the pods were evicted")
	for _, h := range []*host{cp, w1, w2} {
		assert.Len(t, h.RanUnder(), 1, "%s: one drained window", h.Name)
		assert.False(t, w.node(h.Name).Spec.Unschedulable, "%s is given back", h.Name)
		assert.Empty(t, w.node(h.Name).Annotations[v1alpha1.AnnotationCordonedBy])
	}
	assert.Equal(t, "2.1.4", w1.Runtime)
	assert.Empty(t, w.ledger().Slots)

	m := w.machine("w1")
	require.Len(t, m.Status.History, 1)
	entry := m.Status.History[0]
	assert.Equal(t, v1alpha1.OperationSuccessful, entry.State)
	assert.Equal(t, w1.RanUnder()[0], entry.ID)
	require.NotNil(t, entry.From)
	assert.EqualValues(t, oldK8s, entry.From.Kubelet)
	assert.EqualValues(t, newK8s, entry.Target.Kubelet)
	var phases []string
	for _, p := range entry.Phases {
		phases = append(phases, p.Name)
	}
	assert.Equal(t, []string{"Wait", "Drain", "Apply", "Restart", "Ready"}, phases)
	assert.Equal(t, 3*time.Second, entry.Phases[2].Duration.Duration, "what the host measured wins")
	w.until("the phase is Ready", func() bool { return w.machine("w1").Status.Phase == v1alpha1.PhaseReady })
	assert.Nil(t, m.Status.Grant)
	assert.Nil(t, m.Status.Assignment)
}

func TestABadRequestEndsAsAConditionBeforeAnyCordon(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "control-plane", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	for _, name := range []string{"w1", "w2"} {
		w.host(name, "workers", v1alpha1.RoleWorker).set(func(h *host) {
			h.Refuse = &v1alpha1.Failure{Reason: "VersionNotFound", Message: "no source offers kubelet 1.37.99", Terminal: true}
		})
	}
	watcher := w.watch()
	w.pool("workers", workerAt("v1.37.99"))
	w.start()
	w.until("the machine is stalled with the host's own words", func() bool {
		c := w.condition("w1", v1alpha1.ConditionStalled)
		return c.Status == metav1.ConditionTrue && c.Reason == "VersionNotFound"
	})
	assert.Equal(t, "no source offers kubelet 1.37.99", w.condition("w1", v1alpha1.ConditionStalled).Message)
	up := w.condition("w1", v1alpha1.ConditionUpToDate)
	assert.Equal(t, "False VersionNotFound", string(up.Status)+" "+up.Reason)
	w.until("the deployment names the machine", func() bool {
		c := w.deploymentCondition("workers", v1alpha1.ConditionProgressing)
		return c.Status == metav1.ConditionFalse && c.Reason == "VersionNotFound" && strings.Contains(c.Message, "machine w1") // w2 may have been first
	})
	watcher.end()
	assert.Zero(t, watcher.mostAway, "no node was touched")
	assert.Empty(t, w.ledger().Slots)

	for _, name := range []string{"w1", "w2"} {
		w.hosts[name].set(func(h *host) { h.Refuse = nil })
	}
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Versions.Kubelet = newK8s })
	w.untilUpToDate("w1", "w2")
}
