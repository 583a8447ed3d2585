package coordinator

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func standbys(nodes []corev1.Node) (standing, serving []string) {
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		switch {
		case n.Spec.Unschedulable && n.Annotations[v1alpha1.AnnotationCordonedBy] == v1alpha1.CordonStandby:
			standing = append(standing, n.Name)
		case n.Name != "cp1" && ready && !n.Spec.Unschedulable:
			serving = append(serving, n.Name)
		}
	}
	return standing, serving
}

func (w *world) nodes() []corev1.Node {
	list := &corev1.NodeList{}
	require.NoError(w.t, w.admin.List(context.Background(), list))
	return list.Items
}

// fewestServing samples the nodes from outside until the returned function is called.
func (w *world) fewestServing() func() int {
	var fewest atomic.Int64
	fewest.Store(1 << 30)
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			list := &corev1.NodeList{}
			if w.admin.List(ctx, list) != nil {
				continue
			}
			_, serving := standbys(list.Items)
			fewest.Store(min(fewest.Load(), int64(len(serving))))
		}
	}()
	return func() int {
		stop()
		<-ended
		return int(fewest.Load())
	}
}

func TestAStandbyTakesOverForEachMachineInTurnAndNoFewerServe(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	workers := []string{"w1", "w2", "w3", "w4"}
	for _, name := range workers {
		w.host(name, "workers", v1alpha1.RoleWorker)
	}
	w.annotate("w3", v1alpha1.AnnotationStandbyNext, "")
	w.pod("app-3", "w3", true)
	w.pod("app-1", "w1", true)
	w.pool("workers", workerAt(oldK8s), func(d *v1alpha1.MachineDeployment) {
		d.Spec.Replicas = ptr[int32](3)
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{
			MaxUnavailable: ptr(intstr.FromInt32(0)), MaxSurge: ptr(intstr.FromInt32(1)),
		}}
	})
	w.start()
	w.until("the machine that was named stands by", func() bool {
		standing, serving := standbys(w.nodes())
		return slices.Equal(standing, []string{"w3"}) && len(serving) == 3 && len(w.ledger().Slots) == 0
	})
	assert.False(t, w.podExists("app-3"), "it was drained for it")
	assert.True(t, w.podExists("app-1"))
	w.until("it says so", func() bool {
		m := w.machine("w3")
		return m.Status.Role == v1alpha1.MachineRoleStandby && m.Status.Phase == v1alpha1.PhaseStandby
	})
	w.until("and its pool", func() bool {
		d := &v1alpha1.MachineDeployment{}
		key := types.NamespacedName{Namespace: namespace, Name: "workers"}
		return w.admin.Get(context.Background(), key, d) == nil && d.Status.Replicas == 3
	})
	assert.Empty(t, w.hosts["w3"].RanUnder(), "nothing was done to its host")

	fewest := w.fewestServing()
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { *d.Spec.Template.Spec.Versions = workerAt(newK8s) })
	for _, name := range workers {
		w.until(name+" has the new wish", func() bool { return w.machine(name).Spec.Versions.Kubelet == newK8s })
	}
	w.untilUpToDate(workers...)
	w.until("one stands by, and three serve", func() bool {
		standing, serving := standbys(w.nodes())
		return len(standing) == 1 && len(serving) == 3
	})
	assert.Equal(t, 3, fewest(), "serving at once, as sampled from outside")
	for _, name := range workers {
		assert.Len(t, w.hosts[name].RanUnder(), 1, "%s: one drained window", name)
	}

	standing, serving := standbys(w.nodes())
	w.edit("workers", func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = ptr[int32](4) })
	w.until("all serve", func() bool { _, serving := standbys(w.nodes()); return len(serving) == 4 })
	assert.NotContains(t, w.node(standing[0]).Annotations, v1alpha1.AnnotationCordonedBy)
	assert.Len(t, serving, 3)
}

func TestACordonOfSomeoneElseIsNoStandbysAndStays(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	for _, name := range []string{"w1", "w2", "w3"} {
		w.host(name, "workers", v1alpha1.RoleWorker).set(func(h *host) { h.Kubelet = newK8s })
	}
	w.pool("workers", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = ptr[int32](2) })
	w.start()
	var spare string
	w.until("one stands by", func() bool {
		standing, _ := standbys(w.nodes())
		if len(standing) == 1 {
			spare = standing[0]
		}
		return len(standing) == 1 && len(w.ledger().Slots) == 0
	})
	_, serving := standbys(w.nodes())
	w.cordon(serving[0], true)
	w.until("the standby takes over", func() bool { return !w.node(spare).Spec.Unschedulable })
	assert.True(t, w.node(serving[0]).Spec.Unschedulable)
	assert.NotContains(t, w.node(serving[0]).Annotations, v1alpha1.AnnotationCordonedBy)
	w.cordon(serving[0], false)
	w.until("one of them stands by again", func() bool {
		standing, serving := standbys(w.nodes())
		return len(standing) == 1 && len(serving) == 2 && len(w.ledger().Slots) == 0
	})

	standing, _ := standbys(w.nodes())
	require.NoError(t, w.admin.Delete(context.Background(), w.machine(standing[0])))
	w.until("a Machine that goes gives its node back", func() bool {
		return w.machine(standing[0]).Name == "" && !w.node(standing[0]).Spec.Unschedulable
	})
}
