package drains_test

import (
	"context"
	"testing"
	"time"

	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
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
	client := fake.NewClientset()
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

func TestAForgottenDrainEndsAndBeginsAnew(t *testing.T) {
	r, told := start(t, pod("app", true)) // nothing takes an evicted pod away here
	require.False(t, r.Ensure(request("g")).Done)
	<-told
	assert.Contains(t, r.Ensure(request("g")).Message, "1 of 1 pods left")
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
