package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

func nodeThatIs(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Message: "container runtime is down", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}}}
}

func TestADrainOfAnUnreachableNodeEndsAndSaysWhatWouldHelp(t *testing.T) {
	c := newCluster(t, nodeThatIs(corev1.ConditionUnknown), pod("a", leavingSince(time.Minute)))
	warnings := make(chan drain.Event, 10)
	_, err := c.drain(t, drain.Options{Timeout: time.Hour, Progress: only(drain.EventWarning, warnings)})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonNodeUnreachable, b.Reason)
	assert.False(t, b.Permanent, "the node may come back")
	assert.Contains(t, b.Message, ", and the drain ends before its timeout, since no pod ends before the node is back: shop/a")
	assert.Contains(t, b.Message, "node host-1 has been unreachable since")
	assert.Contains(t, b.Message, "drain.skipWaitForDeleteTimeout goes on without such pods")
	w := <-warnings
	assert.Equal(t, drain.ReasonNodeUnreachable, w.Reason)
	assert.Empty(t, w.Name, "it is about the node")
}

func TestAnUnreachableNodeIsLeftBehindOnlyByPolicy(t *testing.T) {
	c := newCluster(t, nodeThatIs(corev1.ConditionUnknown), pod("a", leavingSince(time.Minute)))
	result, err := c.drain(t, drain.Options{Timeout: time.Hour, SkipWaitForDeleteTimeout: time.Second})
	require.NoError(t, err)
	require.Len(t, result.Remaining, 1)
	assert.Equal(t, "a", result.Remaining[0].Name)
}

func TestANodeThatBecomesUnreachableInMidDrainIsNoticed(t *testing.T) {
	c := newCluster(t, nodeThatIs(corev1.ConditionTrue), pod("a", leavingSince(time.Minute)))
	blocked := make(chan drain.Event, 100)
	done := make(chan error, 1)
	go func() {
		_, err := drain.New(c, drain.Options{Timeout: time.Hour, Progress: only(drain.EventBlocked, blocked)}).Quick().Drain(t.Context(), node)
		done <- err
	}()
	e := <-blocked
	assert.Equal(t, drain.ReasonPodsTerminating, e.Reason)
	assert.Contains(t, e.Message, "is to have ended by")
	assert.Contains(t, e.Message, "finalizers hold it: test/holds")
	lost := nodeThatIs(corev1.ConditionUnknown)
	lost.Status.Conditions[0].LastTransitionTime = metav1.Now()
	_, err := c.CoreV1().Nodes().UpdateStatus(t.Context(), lost, metav1.UpdateOptions{})
	require.NoError(t, err)
	select {
	case err := <-done:
		assert.Equal(t, drain.ReasonNodeUnreachable, requireBlocked(t, err).Reason)
	case <-time.After(10 * time.Second):
		require.Fail(t, "the drain hangs")
	}
}

func TestANodeThatIsNotReadyIsWaitedForAndToldOf(t *testing.T) {
	c := newCluster(t, nodeThatIs(corev1.ConditionFalse), pod("a", leavingSince(time.Minute)))
	c.removeAfter(time.Second, "a")
	blocked := make(chan drain.Event, 100)
	_, err := c.drain(t, drain.Options{Timeout: time.Minute, Progress: only(drain.EventBlocked, blocked)})
	require.NoError(t, err, "its kubelet lives, and may end the pod")
	assert.Contains(t, (<-blocked).Message, "(container runtime is down)")
}

func TestAnAPIServerThatFailsForAMomentEndsNoDrain(t *testing.T) {
	c := newCluster(t, daemonSet("cni"), pod("d", ofDaemonSet("cni"), withClaim("data")), claim("data", "pv"), pod("a"))
	failures := map[string]int{"nodes": 3, "persistentvolumeclaims": 3}
	c.PrependReactor("get", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		failures[a.GetResource().Resource]--
		if failures[a.GetResource().Resource] >= 0 {
			return true, nil, apierrors.NewServiceUnavailable("overloaded")
		}
		return false, nil, nil
	})
	_, err := c.drain(t, drain.Options{Timeout: time.Minute, AwaitVolumes: true})
	require.NoError(t, err)
	assert.Negative(t, failures["nodes"])
	assert.Negative(t, failures["persistentvolumeclaims"])
}

func TestANodeThatDoesNotExistIsNotDrained(t *testing.T) {
	c := newCluster(t, pod("a"))
	require.NoError(t, c.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))
	_, err := c.drain(t, drain.Options{})
	require.ErrorContains(t, err, "reading node host-1")
	assert.True(t, apierrors.IsNotFound(err))
	assert.Zero(t, c.allTries())
}
