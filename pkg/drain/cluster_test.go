package drain_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

const node = "host-1"

// cluster is a client whose evictions a test answers. An eviction that is let
// through deletes the pod, unless the test says that it lingers.
type cluster struct {
	*fake.Clientset
	mu      sync.Mutex
	answers map[string][]error // per pod, used up one by one; then the default
	always  map[string]error   // per pod, for ever
	lingers map[string]bool
	tries   map[string][]time.Time
	removed map[string]time.Time // by removeAfter
	uids    map[string]types.UID // of the precondition
	deletes []string
	denyAll bool // by role
	// watching is closed once pods are watched: this client loses what happens between list and watch.
	watching, watchingBudgets chan struct{}
}

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	c := &cluster{
		Clientset: fake.NewClientset(objects...),
		answers:   map[string][]error{}, always: map[string]error{}, lingers: map[string]bool{},
		tries: map[string][]time.Time{}, removed: map[string]time.Time{}, uids: map[string]types.UID{},
		watching: make(chan struct{}), watchingBudgets: make(chan struct{}),
	}
	if _, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}); err != nil {
		require.NoError(t, c.Tracker().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}))
	}
	c.tellWatching("pods", podsResource, c.watching)
	c.tellWatching("poddisruptionbudgets", policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), c.watchingBudgets)
	c.PrependReactor("create", "pods", c.evict)
	c.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.deletes = append(c.deletes, a.(k8stesting.DeleteAction).GetName())
		return false, nil, nil
	})
	c.PrependReactor("create", "selfsubjectaccessreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: !c.denyAll}}, nil
	})
	return c
}

func (c *cluster) tellWatching(name string, resource schema.GroupVersionResource, begun chan struct{}) {
	var once sync.Once
	c.PrependWatchReactor(name, func(a k8stesting.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker().Watch(resource, a.GetNamespace())
		once.Do(func() { close(begun) })
		return true, w, err
	})
}

func (c *cluster) evict(a k8stesting.Action) (bool, runtime.Object, error) {
	if a.GetSubresource() != "eviction" {
		return false, nil, nil
	}
	e := a.(k8stesting.CreateAction).GetObject().(*policyv1.Eviction)
	c.mu.Lock()
	c.tries[e.Name] = append(c.tries[e.Name], time.Now())
	if e.DeleteOptions != nil && e.DeleteOptions.Preconditions != nil {
		c.uids[e.Name] = *e.DeleteOptions.Preconditions.UID
	}
	err := c.always[e.Name]
	if queue := c.answers[e.Name]; len(queue) > 0 {
		err, c.answers[e.Name] = queue[0], queue[1:]
	}
	lingers := c.lingers[e.Name]
	c.mu.Unlock()
	if err == nil && !lingers {
		go c.remove(e.Name)
	}
	return true, nil, err
}

func (c *cluster) remove(name string) {
	<-c.watching
	_ = c.Tracker().Delete(podsResource, "shop", name)
}

// removeAfter is the kubelet, or someone else, ending the pod.
func (c *cluster) removeAfter(d time.Duration, name string) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		c.removed[name] = time.Now()
		c.mu.Unlock()
		c.remove(name)
	})
}

func (c *cluster) triesOf(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tries[name])
}

func (c *cluster) allTries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, t := range c.tries {
		n += len(t)
	}
	return n
}

func (c *cluster) setAlways(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.always, name)
		return
	}
	c.always[name] = err
}

// onlyPodsOfTheirNode lists pods by their node, which this client cannot: its field selectors select all.
func (c *cluster) onlyPodsOfTheirNode() {
	c.PrependReactor("list", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		host, given := a.(k8stesting.ListAction).GetListRestrictions().Fields.RequiresExactMatch("spec.nodeName")
		if !given {
			return false, nil, nil
		}
		all, err := c.Tracker().List(podsResource, corev1.SchemeGroupVersion.WithKind("Pod"), "")
		if err != nil {
			return true, nil, err
		}
		out := &corev1.PodList{}
		for _, p := range all.(*corev1.PodList).Items {
			if p.Spec.NodeName == host {
				out.Items = append(out.Items, p)
			}
		}
		return true, out, nil
	})
}

func (c *cluster) drain(t *testing.T, opts drain.Options) (drain.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return drain.New(c, opts).Quick().Drain(ctx, node)
}

func (c *cluster) updateBudget(t *testing.T, b *policyv1.PodDisruptionBudget) {
	t.Helper()
	_, err := c.PolicyV1().PodDisruptionBudgets(b.Namespace).Update(t.Context(), b, metav1.UpdateOptions{})
	require.NoError(t, err)
}

type podOption func(*corev1.Pod)

func pod(name string, options ...podOption) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func bare(p *corev1.Pod)   { p.OwnerReferences = nil }
func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
func unready(p *corev1.Pod) {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
}
func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}
func inPhase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func ofDaemonSet(name string) podOption {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, Controller: &yes}}
	}
}
func leavingSince(ago time.Duration) podOption {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(time.Now().Add(-ago))
		p.DeletionTimestamp, p.Finalizers = &at, []string{"test/holds"}
	}
}

func daemonSet(name string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// budget of the pods with label app=NAME of a pod; version stands for its resourceVersion.
func budget(name, app string, allowed int32, version int) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: fmt.Sprint(version)},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 2},
	}
}

func budgetError(name string, retryAfter int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget " + name + " needs 1 healthy pods and has 1 currently"}}
	return err
}

func overlapError() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
	}}
}

func terminatingError() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", fmt.Errorf("being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func forbidden(what string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: what}, "x", fmt.Errorf("no role allows it"))
}

func requireBlocked(t *testing.T, err error) *drain.Blocked {
	t.Helper()
	var b *drain.Blocked
	require.ErrorAs(t, err, &b)
	return b
}

// begin drains beside the test.
func (c *cluster) begin(t *testing.T, opts drain.Options) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := drain.New(c, opts).Quick().Drain(t.Context(), node)
		done <- err
	}()
	return done
}

func awaitEvent(t *testing.T, events <-chan drain.Event) drain.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(20 * time.Second):
		require.Fail(t, "nobody was told")
		return drain.Event{}
	}
}
