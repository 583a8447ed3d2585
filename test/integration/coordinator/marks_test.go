package coordinator

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var gpu = corev1.Taint{Key: "example.com/gpu", Value: "a100", Effect: corev1.TaintEffectPreferNoSchedule}

func (w *world) taint(name string, t corev1.Taint) {
	w.t.Helper()
	n := w.node(name)
	before := n.DeepCopy()
	n.Spec.Taints = append(n.Spec.Taints, t)
	require.NoError(w.t, w.admin.Patch(context.Background(), n, client.MergeFrom(before)))
}

func (w *world) outdated(name string) bool {
	return slices.ContainsFunc(w.node(name).Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintOutdated && t.Effect == corev1.TaintEffectPreferNoSchedule
	})
}

func TestNodesThatAwaitTheirDrainAreTaintedUntilTheyAreFinished(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	hold := func(hold bool) {
		for _, name := range []string{"w1", "w2", "w3"} {
			w.hosts[name].set(func(h *host) { h.Hold = hold })
		}
	}
	for _, name := range []string{"w1", "w2", "w3"} {
		w.host(name, "workers", v1alpha1.RoleWorker)
	}
	hold(true)
	w.taint("w1", gpu)
	w.pool("workers", workerAt(newK8s))
	w.start()
	tainted := func(want bool) func() bool {
		return func() bool {
			return w.outdated("w1") == want && w.outdated("w2") == want && w.outdated("w3") == want
		}
	}
	w.until("the nodes are marked", tainted(true))
	assert.False(t, w.outdated("cp1"), "it is up to date")
	w.taint("w2", gpu)

	w.edit("workers", func(d *v1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{v1alpha1.AnnotationAbort: "tonight"}
	})
	w.until("an abort takes the marks off", tainted(false))
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { delete(d.Annotations, v1alpha1.AnnotationAbort) })
	w.until("and its end brings them back", tainted(true))

	require.NoError(t, w.admin.Delete(context.Background(), w.machine("w3")))
	w.until("a Machine that goes takes its mark along", func() bool { return w.machine("w3").Name == "" && !w.outdated("w3") })

	hold(false)
	w.untilUpToDate("w1", "w2")
	w.until("the marks are gone", tainted(false))
	for name, want := range map[string]bool{"w1": true, "w2": true, "w3": false} {
		assert.Equal(t, want, slices.Contains(w.node(name).Spec.Taints, gpu), name)
	}
}

func TestAMarkOnANodeWithoutAMachineGoes(t *testing.T) {
	w := newWorld(t)
	w.host("w1", "workers", v1alpha1.RoleWorker).set(func(h *host) { h.Kubelet = newK8s })
	w.start()
	w.until("the coordinator leads", func() bool { return w.ledger().Epoch > 0 })
	n := &corev1.Node{}
	n.Name = "stray"
	n.Spec.Taints = []corev1.Taint{gpu, {Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule}}
	require.NoError(t, w.admin.Create(context.Background(), n))
	w.until("it goes", func() bool { return !w.outdated("stray") })
	got := &corev1.Node{}
	require.NoError(t, w.admin.Get(context.Background(), types.NamespacedName{Name: "stray"}, got))
	assert.Contains(t, got.Spec.Taints, gpu)
}

func TestTheAutoscalerKeepsTheNodeInFlightAndAPersonsWordStays(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	for _, name := range []string{"w1", "w2"} {
		w.host(name, "workers", v1alpha1.RoleWorker).set(func(h *host) { h.WorkTime = 3 * time.Second })
	}
	n := w.node("w1")
	before := n.DeepCopy()
	n.Annotations = map[string]string{v1alpha1.AnnotationScaleDownDisabled: "true"}
	require.NoError(t, w.admin.Patch(context.Background(), n, client.MergeFrom(before)))
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("the node of the slot is kept", func() bool {
		a, slot := w.node("w2").Annotations, w.slot("w2")
		return slot != nil && a[v1alpha1.AnnotationScaleDownDisabled] == "true" && a[v1alpha1.AnnotationScaleDownDisabledBy] == slot.GrantID
	})
	w.untilUpToDate("w1", "w2")
	w.until("and only as long", func() bool {
		a := w.node("w2").Annotations
		return a[v1alpha1.AnnotationScaleDownDisabled] == "" && a[v1alpha1.AnnotationScaleDownDisabledBy] == ""
	})
	assert.Equal(t, "true", w.node("w1").Annotations[v1alpha1.AnnotationScaleDownDisabled])
	assert.NotContains(t, w.node("w1").Annotations, v1alpha1.AnnotationScaleDownDisabledBy)
}
