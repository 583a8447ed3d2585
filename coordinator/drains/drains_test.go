package drains_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var w1 = types.NamespacedName{Namespace: "refit", Name: "w1"}

func pod(name string, managed bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "w1"}}
	if managed {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "1", Controller: new(bool)}}
		*p.OwnerReferences[0].Controller = true
	}
	return p
}

func start(t *testing.T, pods ...*corev1.Pod) (*drains.Runner, chan types.NamespacedName) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})
	for _, p := range pods {
		require.NoError(t, client.Tracker().Add(p))
	}
	told := make(chan types.NamespacedName, 100)
	return &drains.Runner{Base: ctx, Client: client, Changed: func(k types.NamespacedName) { told <- k }}, told
}

func request(id string) drains.Request {
	return drains.Request{GrantID: id, Machine: w1, Node: "w1", Options: drain.OptionsFor(nil)}
}

func awaitDone(t *testing.T, r *drains.Runner, req drains.Request) drains.State {
	t.Helper()
	require.Eventually(t, func() bool { return r.Ensure(req).Done }, 10*time.Second, 5*time.Millisecond)
	return r.Ensure(req)
}

func TestADrainRunsBesideTheReconcileAndTellsWhenItHasEnded(t *testing.T) {
	r, told := start(t)
	require.False(t, r.Ensure(request("g")).Done, "starting does not wait")
	state := awaitDone(t, r, request("g"))
	require.NoError(t, state.Err)
	select {
	case k := <-told:
		assert.Equal(t, w1, k)
	case <-time.After(10 * time.Second):
		require.Fail(t, "nobody was told")
	}
}

func TestABlockedDrainSaysWhichPodIsInTheWay(t *testing.T) {
	r, _ := start(t, pod("bare", false))
	state := awaitDone(t, r, request("g"))
	var blocked *drain.Blocked
	require.ErrorAs(t, state.Err, &blocked)
	assert.Equal(t, drain.ReasonUnmanagedPods, blocked.Reason)
	assert.Contains(t, blocked.Message, "default/bare")
}

func TestTheMessageOfADrainNamesThePodThatNeedsAPersonMost(t *testing.T) {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1},
	}
	web := pod("web-1", true)
	web.Labels, web.Status.Phase = map[string]string{"app": "web"}, corev1.PodRunning
	web.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	r, _ := start(t, web, pod("app", true))
	client, ok := r.Client.(*fake.Clientset)
	require.True(t, ok)
	require.NoError(t, client.Tracker().Add(b))
	refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "needs 1"}}
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, refused
	})
	said := func() string { return r.Ensure(request("g")).Message }
	require.Eventually(t, func() bool {
		return strings.Contains(said(), "1 more blocked") && strings.Contains(said(), "default/web-1")
	}, 10*time.Second, 5*time.Millisecond, "%s", said())
	assert.Contains(t, said(), "2 of 2 pods left; default/web-1 is blocked since 2")
	assert.Contains(t, said(), "it can never allow one; add replicas")
}

func TestAForgottenDrainEndsAndBeginsAnew(t *testing.T) {
	r, told := start(t, pod("app", true)) // nothing takes an evicted pod away here
	require.False(t, r.Ensure(request("g")).Done)
	<-told
	assert.Contains(t, r.Ensure(request("g")).Message, "1 of 1 pod left")
	r.Forget("g")
	r.Forget("g")
	assert.NotContains(t, r.Ensure(request("g")).Message, "left", "it starts from the beginning")
}

func TestOnlyThePodsOfThisProgramAreItsOwn(t *testing.T) {
	own := drains.OwnPods("refit-system", "refit-coordinator")
	p := pod("x", true)
	p.Labels = map[string]string{"app.kubernetes.io/name": "refit-coordinator"}
	assert.False(t, own(p), "another namespace")
	p.Namespace = "refit-system"
	assert.True(t, own(p))
}

func TestWhatTheNodeWaitsForIsSaid(t *testing.T) {
	r, _ := start(t, pod("app", true))
	req := request("g")
	req.Options.LoadBalancerDelay = time.Hour
	require.Eventually(t, func() bool {
		return strings.Contains(r.Ensure(req).Message, "load balancers have 1h0m0s to leave node w1 out")
	}, 10*time.Second, 5*time.Millisecond)
}

func TestWhatAPolicyLeavesBehindIsAWarning(t *testing.T) {
	leaving := pod("slow", true)
	at := metav1.NewTime(time.Now().Add(-time.Hour))
	leaving.DeletionTimestamp, leaving.Finalizers = &at, []string{"test/holds"}
	r, _ := start(t, leaving)
	client, ok := r.Client.(*fake.Clientset)
	require.True(t, ok)
	volume := "pv-1"
	require.NoError(t, client.Tracker().Add(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-1"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "w1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}))
	req := request("g")
	req.Options.SkipWaitForDeleteTimeout, req.Options.AwaitVolumes = time.Minute, true
	req.Options.VolumeDetachTimeout, req.Options.OnVolumesAttached = time.Millisecond, drain.ActionProceed
	state := awaitDone(t, r, req)
	require.NoError(t, state.Err)
	assert.Contains(t, state.Warning, "pod default/slow")
	assert.Contains(t, state.Warning, "VolumeAttachment va-1 of PersistentVolume pv-1")
}
