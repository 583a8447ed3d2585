package nodemarks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/coordinator/nodemarks"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// world has one API server for machines, and one for nodes.
type world struct {
	*nodemarks.Reconciler
	t      *testing.T
	cached client.Client
	kube   *kubefake.Clientset
	now    time.Time
	writes int
}

func newWorld(t *testing.T, b *Builder) *world {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects := fake.NewClientBuilder().WithScheme(scheme)
	kube := kubefake.NewClientset()
	for i := range b.Objects.Machines {
		b.Objects.Machines[i].Namespace = "refit"
		objects = objects.WithObjects(&b.Objects.Machines[i])
	}
	for i := range b.Objects.Deployments {
		b.Objects.Deployments[i].Namespace = "refit"
		objects = objects.WithObjects(&b.Objects.Deployments[i])
	}
	for i := range b.Objects.Nodes {
		require.NoError(t, kube.Tracker().Add(b.Objects.Nodes[i].DeepCopy()))
	}
	w := &world{t: t, cached: objects.Build(), kube: kube, now: Now}
	kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.writes++
		return false, nil, nil
	})
	store := &ledger.Store{Live: w.cached, Writer: w.cached, Now: func() metav1.Time { return metav1.NewTime(w.now) }}
	w.Reconciler = &nodemarks.Reconciler{
		Machines: w.cached, Nodes: nodes{kube: kube}, Workload: kube, Ledger: store,
		Now: func() time.Time { return w.now }, Deposed: func(error) {},
	}
	return w
}

// nodes reads what was written.
type nodes struct {
	client.Reader
	kube *kubefake.Clientset
}

func (r nodes) List(ctx context.Context, l client.ObjectList, _ ...client.ListOption) error {
	list, err := r.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil {
		list.DeepCopyInto(l.(*corev1.NodeList))
	}
	return err
}

func (w *world) pass(name string) ctrl.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	require.NoError(w.t, err)
	return result
}

func (w *world) marks(name string) drain.Marks {
	n, err := w.kube.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return drain.MarksOf(n)
}

func TestMarksAreWrittenAFewInASecond(t *testing.T) {
	b := New().Deployment("w")
	for i := range 25 {
		b.Machine(fmt.Sprintf("w%02d", i), "w", worker, judged(metav1.ConditionFalse))
	}
	w := newWorld(t, b)
	assert.Equal(t, 100*time.Millisecond, w.pass("refit").RequeueAfter)
	assert.Equal(t, 10, w.writes)
	w.pass("refit")
	assert.Equal(t, 10, w.writes, "the second is not over, whatever brings the pass about")
	w.now = w.now.Add(500 * time.Millisecond)
	w.pass("refit")
	assert.Equal(t, 15, w.writes)
}

func TestNodesWithoutAMachineAreGivenBackAndOthersLeftAlone(t *testing.T) {
	b := New().Machine("w1", "", worker, marked).Machine("w2", "", worker, marked)
	b.Objects.Machines = b.Objects.Machines[1:]
	b.Objects.Nodes = append(b.Objects.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "plain"}})
	w := newWorld(t, b)
	w.pass("refit")
	assert.True(t, w.marks("w1").Outdated, "no Machine of this namespace")
	assert.False(t, w.marks("w2").Outdated)
	w.pass(nodemarks.Orphans)
	assert.False(t, w.marks("w1").Outdated)
	assert.Equal(t, 2, w.writes)
}
