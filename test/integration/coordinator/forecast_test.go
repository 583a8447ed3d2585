package coordinator

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (w *world) drop(pod string) {
	w.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod}}
	require.NoError(w.t, w.admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)))
}

func TestADrainThatCanNeverSucceedIsNotBegunAndTheOthersGo(t *testing.T) {
	w := fleetOfThree(t)
	w.pod("bare", "w1", false)
	cordons := w.cordonsOf("w1")
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.untilUpToDate("w2", "w3")
	w.until("w1 says why it waits", func() bool { return w.condition("w1", v1alpha1.ConditionWaiting).Reason == "DrainImpossible" })
	c := w.condition("w1", v1alpha1.ConditionForecast)
	assert.Equal(t, "False UnmanagedPods", string(c.Status)+" "+c.Reason)
	assert.Contains(t, c.Message, "default/bare has no controller")
	assert.Contains(t, w.condition("w1", v1alpha1.ConditionWaiting).Message, "its drain can never succeed as things are (UnmanagedPods)")
	assert.Nil(t, w.machine("w1").Status.RolloutFailure, "nothing has failed")
	assert.Empty(t, w.hosts["w1"].RanUnder())
	assert.Zero(t, cordons(), "its node was never taken away")

	w.drop("bare")
	w.untilUpToDate("w1")
	assert.Empty(t, w.condition("w1", v1alpha1.ConditionForecast).Status, "it waits for no drain")
}

// cordonsOf counts how often the node is seen cordoned from now on.
func (w *world) cordonsOf(node string) func() int32 {
	w.t.Helper()
	kube, err := kubernetes.NewForConfig(server.Admin())
	require.NoError(w.t, err)
	watch, err := kube.CoreV1().Nodes().Watch(w.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + node})
	require.NoError(w.t, err)
	w.t.Cleanup(watch.Stop)
	var count atomic.Int32
	go func() {
		for e := range watch.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok && n.Spec.Unschedulable {
				count.Add(1)
			}
		}
	}()
	return count.Load
}

func TestAUserSeesBeforeTheNightThatADrainCanNeverSucceed(t *testing.T) {
	w := fleetOfThree(t)
	w.pod("db", "w1", true)
	db := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	require.NoError(t, w.admin.Patch(context.Background(), db, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"db"}}}`))))
	running := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	require.NoError(t, w.admin.Status().Patch(context.Background(), db, client.RawPatch(types.MergePatchType, []byte(running))))
	one := intstr.FromInt(1)
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
	}}
	require.NoError(t, w.admin.Create(context.Background(), b))
	t.Cleanup(func() { _ = w.admin.Delete(context.Background(), b) })
	w.seen(b, policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1})

	w.pool("workers", workerAt(newK8s), func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true })
	w.start()
	w.until("the paused pool says that w1 never can", func() bool {
		c := w.condition("w1", v1alpha1.ConditionForecast)
		return c.Status == metav1.ConditionFalse && c.Reason == "EvictionBlocked"
	})
	assert.Contains(t, w.condition("w1", v1alpha1.ConditionForecast).Message, "budget db allows 0 disruptions (1 healthy, 1 needed, 1 expected): it can never allow one")
	assert.Equal(t, "Paused", w.condition("w1", v1alpha1.ConditionWaiting).Reason, "what a person decided is told first")
	w.until("w2 can", func() bool { return w.condition("w2", v1alpha1.ConditionForecast).Reason == "DrainFree" })

	w.seen(b, policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2, DisruptionsAllowed: 1})
	w.until("a second replica makes it possible", func() bool {
		c := w.condition("w1", v1alpha1.ConditionForecast)
		return c.Status == metav1.ConditionTrue && c.Reason == "DrainFree"
	})
	assert.True(t, w.podExists("db"))
}

// seen plays the disruption controller.
func (w *world) seen(b *policyv1.PodDisruptionBudget, s policyv1.PodDisruptionBudgetStatus) {
	w.t.Helper()
	require.NoError(w.t, w.admin.Get(context.Background(), client.ObjectKeyFromObject(b), b))
	s.ObservedGeneration = b.Generation
	b.Status = s
	require.NoError(w.t, w.admin.Status().Update(context.Background(), b))
}
