package drain

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

const node, other = "host-1", "host-2"

type world struct {
	*testing.T
	server *apiserver.Server
	client kubernetes.Interface
	// drainer is the user that drains: what it does is judged by the audit log.
	drainer kubernetes.Interface
	// dead are nodes whose kubelet has gone.
	dead sync.Map
}

const drainer, coordinator = "refit-drainer", "system:serviceaccount:refit-system:refit-coordinator"

// newWorld is a cluster of two nodes whose kubelets end deleted pods at once.
func newWorld(t *testing.T) *world {
	srv := apiserver.Start(t, apiserver.WithAudit(audit.Bodies))
	srv.StartControllers(t, "disruption-controller", "serviceaccount-controller")
	w := &world{T: t, server: srv, client: clientFor(t, srv.Admin()), drainer: clientFor(t, srv.As(t, drainer, "system:masters"))}
	for _, n := range []string{node, other} {
		_, err := w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	go w.kubelet()
	return w
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return c
}

// kubelet ends pods that are being deleted, but for those that a finalizer of the test holds.
func (w *world) kubelet() {
	for w.Context().Err() == nil {
		watch, err := w.client.CoreV1().Pods("").Watch(w.Context(), metav1.ListOptions{})
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for e := range watch.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			_, dead := w.dead.Load(p.Spec.NodeName)
			if p.DeletionTimestamp != nil && e.Type != "DELETED" && !dead {
				now := int64(0)
				_ = w.client.CoreV1().Pods(p.Namespace).Delete(w.Context(), p.Name, metav1.DeleteOptions{
					GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}, // never a pod that has taken the name since
				})
			}
		}
	}
}

// within gives each case a namespace of its own and takes its pods away after it.
func (w *world) within(t *testing.T, name string) *space {
	t.Helper()
	_, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s := &space{world: w, t: t, name: name}
	require.Eventually(t, func() bool {
		_, err := w.client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, 20*time.Second, 20*time.Millisecond, "the namespace's default ServiceAccount")
	t.Cleanup(func() {
		now := int64(0)
		_ = w.client.CoreV1().Pods(name).DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		_ = w.client.PolicyV1().PodDisruptionBudgets(name).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
	})
	return s
}

type space struct {
	*world
	t    *testing.T
	name string
}

func (s *space) pod(name, on, app string, ready bool, edits ...func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "1", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	p, err := s.client.CoreV1().Pods(s.name).Create(s.t.Context(), p, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.setReady(name, ready)
	return p
}

// setReady is the kubelet's word that the pod runs, and whether it is ready.
func (s *space) setReady(name string, ready bool) {
	s.t.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}},
	}})
	require.NoError(s.t, err)
	_, err = s.client.CoreV1().Pods(s.name).Patch(s.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(s.t, err)
}

// budget waits until the disruption controller has judged it.
func (s *space) budget(name, app string, minAvailable int, unhealthy *policyv1.UnhealthyPodEvictionPolicyType, wantAllowed int32, wantHealthy int32) {
	s.t.Helper()
	floor := intstr.FromInt(minAvailable)
	_, err := s.client.PolicyV1().PodDisruptionBudgets(s.name).Create(s.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &floor, UnhealthyPodEvictionPolicy: unhealthy,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		b, err := s.client.PolicyV1().PodDisruptionBudgets(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.DisruptionsAllowed == wantAllowed && b.Status.CurrentHealthy == wantHealthy
	}, 20*time.Second, 20*time.Millisecond, "the disruption controller's verdict")
}

func (s *space) drain(opts drain.Options) (drain.Result, error) {
	return drain.New(s.drainer, opts).Drain(s.t.Context(), node)
}

// evictDry asks whether an eviction would be accepted.
func (s *space) evictDry(p *corev1.Pod) error {
	return s.client.PolicyV1().Evictions(s.name).Evict(s.t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: s.name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}

// start drains in the background and returns the channel of its end and one of its events.
func (s *space) start(opts drain.Options) (<-chan error, <-chan drain.Event) {
	done, events := make(chan error, 1), make(chan drain.Event, 1000)
	opts.Progress = func(e drain.Event) { events <- e }
	go func() {
		_, err := drain.New(s.drainer, opts).Drain(s.t.Context(), node)
		done <- err
	}()
	return done, events
}

func awaitEvent(t *testing.T, events <-chan drain.Event, kind drain.EventKind, name string) drain.Event {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case e := <-events:
			if e.Kind == kind && e.Name == name {
				return e
			}
		case <-timeout:
			require.Fail(t, fmt.Sprintf("no event %s of pod %s", kind, name))
		}
	}
}

func requireBlocked(t *testing.T, err error) *drain.Blocked {
	t.Helper()
	var b *drain.Blocked
	require.ErrorAs(t, err, &b)
	return b
}
