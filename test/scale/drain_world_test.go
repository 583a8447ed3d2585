package scale

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

// grace is how long every pod takes to end.
const grace = 2 * time.Second

// drainWorld is a real API server with the real disruption controller. Only kubelets are
// played: a pod ends when its grace is over.
type drainWorld struct {
	t      *testing.T
	server *apiserver.Server
	client kubernetes.Interface
	// replace makes another pod elsewhere for each one that leaves, as a ReplicaSet would.
	replace bool
	seen    sync.Map // UIDs of pods that are ending

	mu    sync.Mutex
	left  int           // pods that awaitEnds waits for
	ended chan struct{} // closed when they have ended
}

// awaitEnds tells when that many more pods have ended.
func (w *drainWorld) awaitEnds(n int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.ended = n, make(chan struct{})
	return w.ended
}

func (w *drainWorld) oneEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left--; w.left == 0 {
		close(w.ended)
	}
}

// newDrainWorld skips the test unless the long measurements are asked for.
func newDrainWorld(t *testing.T) *drainWorld {
	t.Helper()
	if os.Getenv("REFIT_SCALE") == "" {
		t.Skip("set REFIT_SCALE=1, or run make scale")
	}
	srv := apiserver.Start(t, apiserver.WithAudit(audit.Counts))
	srv.StartControllers(t, "disruption-controller", "serviceaccount-controller")
	client, err := kubernetes.NewForConfig(srv.Admin())
	require.NoError(t, err)
	w := &drainWorld{t: t, server: srv, client: client}
	go w.kubelets()
	return w
}

// clientOf is a client of a user of its own, so that the audit log tells whose requests are whose.
func (w *drainWorld) clientOf(user string) kubernetes.Interface {
	w.t.Helper()
	c, err := kubernetes.NewForConfig(w.server.As(w.t, user, "system:masters"))
	require.NoError(w.t, err)
	return c
}

func (w *drainWorld) kubelets() {
	ctx := w.t.Context()
	for ctx.Err() == nil {
		pods, err := w.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{})
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for e := range pods.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && p.DeletionTimestamp != nil && e.Type != watch.Deleted {
				if _, known := w.seen.LoadOrStore(p.UID, true); !known {
					time.AfterFunc(grace, func() { w.end(p) })
				}
			}
		}
	}
}

func (w *drainWorld) end(p *corev1.Pod) {
	now := int64(0)
	_ = w.client.CoreV1().Pods(p.Namespace).Delete(w.t.Context(), p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID},
	})
	w.oneEnded()
	if w.replace {
		_ = w.makePod(w.t.Context(), p.Namespace, p.Name+"-again", "spare", p.Labels["app"], true)
	}
}

func (w *drainWorld) addNode(ctx context.Context, name string) error {
	_, err := w.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

func (w *drainWorld) addNamespace(name string) {
	w.t.Helper()
	_, err := w.client.CoreV1().Namespaces().Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		_, err := w.client.CoreV1().ServiceAccounts(name).Get(w.t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
}

// makePod makes a running pod of a ReplicaSet.
func (w *drainWorld) makePod(ctx context.Context, ns, name, on, app string, ready bool) error {
	yes, seconds := true, int64(grace/time.Second)
	_, err := w.client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "1", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: on, TerminationGracePeriodSeconds: &seconds, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return w.setReady(ctx, ns, name, ready)
}

func (w *drainWorld) setReady(ctx context.Context, ns, name string, ready bool) error {
	state := "False"
	if ready {
		state = "True"
	}
	patch := fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":%q}]}}`, state)
	_, err := w.client.CoreV1().Pods(ns).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

func (w *drainWorld) makeBudget(ctx context.Context, ns, app string, floor int) error {
	least := intstr.FromInt32(int32(floor))
	_, err := w.client.PolicyV1().PodDisruptionBudgets(ns).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
	}, metav1.CreateOptions{})
	return err
}

// awaitBudgets waits until the disruption controller counts that many pods in each budget.
func (w *drainWorld) awaitBudgets(ns string, healthy int32) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		list, err := w.client.PolicyV1().PodDisruptionBudgets(ns).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, b := range list.Items {
			if b.Status.ObservedGeneration != b.Generation || b.Status.CurrentHealthy != healthy {
				return false
			}
		}
		return true
	}, 2*time.Minute, 100*time.Millisecond, "the disruption controller's verdict")
}

// together does the same for many things, some at a time.
func (w *drainWorld) together(n int, do func(ctx context.Context, i int) error) {
	w.t.Helper()
	together(w.t, n, do)
}

func together(t *testing.T, n int, do func(ctx context.Context, i int) error) {
	t.Helper()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	require.NoError(t, g.Wait())
}

func (w *drainWorld) log() audit.Log { return audit.Read(w.t, w.server.AuditLog()) }

// firstEviction is when the first eviction of the user came in that was accepted.
func firstEviction(log audit.Log) time.Time {
	for _, e := range log {
		if strings.HasSuffix(e.RequestURI, "/eviction") || strings.Contains(e.RequestURI, "/eviction?") {
			if e.Succeeded() {
				return e.Received
			}
		}
	}
	return time.Time{}
}
