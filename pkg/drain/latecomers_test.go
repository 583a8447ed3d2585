package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/pkg/drain"
)

// meanwhile puts pods onto the node when the drain has evicted the pod "first", which lingers until the last of them is there.
func (c *cluster) meanwhile(t *testing.T, late ...*corev1.Pod) {
	t.Helper()
	c.lingers["first"] = true
	go func() {
		<-c.watching
		for c.triesOf("first") == 0 && t.Context().Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		for _, p := range late {
			_ = c.Tracker().Create(podsResource, p, "shop")
		}
		c.remove("first")
	}()
}

func TestAPodThatMayNotGoIsWaitedForWhenItComesInTheMiddleOfADrain(t *testing.T) {
	keepsData := drain.Options{EmptyDir: drain.ActionFail}
	for name, tc := range map[string]struct {
		late   *corev1.Pod
		opts   drain.Options
		reason string
		says   string
	}{
		"a bare pod":                   {late: pod("late", bare), reason: drain.ReasonUnmanagedPods, says: "has no controller"},
		"one whose DaemonSet is gone":  {late: pod("late", ofDaemonSet("gone")), reason: drain.ReasonUnmanagedPods, says: "its DaemonSet gone is gone"},
		"one with data in an emptyDir": {late: pod("late", emptyDir), opts: keepsData, reason: drain.ReasonEmptyDirPods, says: "has emptyDir data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("until it has gone", func(t *testing.T) {
				c := newCluster(t, pod("first"), pod("second", withOrder("1")))
				c.meanwhile(t, tc.late.DeepCopy())
				blocked := make(chan drain.Event, 100)
				opts := tc.opts
				opts.Timeout, opts.Progress = time.Minute, only(drain.EventBlocked, blocked)
				done := c.begin(t, opts)
				e := awaitEvent(t, blocked)
				assert.Equal(t, []any{"late", tc.reason, true}, []any{e.Name, e.Reason, e.Lasting})
				assert.Contains(t, e.Message, tc.says)
				c.remove("late")
				require.NoError(t, <-done)
				assert.Zero(t, c.triesOf("late"))
				assert.Equal(t, 1, c.triesOf("second"), "the others leave all the same")
			})
			t.Run("until the timeout", func(t *testing.T) {
				c := newCluster(t, pod("first"))
				c.meanwhile(t, tc.late.DeepCopy())
				opts := tc.opts
				opts.Timeout = time.Second
				_, err := c.drain(t, opts)
				b := requireBlocked(t, err)
				assert.Equal(t, tc.reason, b.Reason)
				assert.False(t, b.Permanent)
				assert.Contains(t, b.Message, "1 of 2 pods are still on node host-1")
				assert.Contains(t, b.Message, tc.says)
			})
		})
	}
}

func TestAPodThatCameInTheMiddleIsNotDeletedByThePolicyForBudgets(t *testing.T) {
	c := newCluster(t, pod("first"))
	c.meanwhile(t, pod("late", bare))
	_, err := c.drain(t, drain.Options{Timeout: time.Second, OnTimeout: drain.ActionDelete})
	assert.Equal(t, drain.ReasonUnmanagedPods, requireBlocked(t, err).Reason)
	assert.Empty(t, c.deletes)

	c = newCluster(t, pod("first"))
	c.meanwhile(t, pod("late", bare))
	result, err := c.drain(t, drain.Options{Timeout: time.Second, OnTimeout: drain.ActionProceed})
	require.NoError(t, err)
	require.Len(t, result.Remaining, 1)
	assert.Equal(t, drain.ReasonUnmanagedPods, result.Remaining[0].Reason)
}

func TestABarePodThatAControllerAdoptsInTheMiddleOfADrainIsEvicted(t *testing.T) {
	c := newCluster(t, pod("first"))
	c.meanwhile(t, pod("late", bare))
	blocked := make(chan drain.Event, 100)
	done := c.begin(t, drain.Options{Timeout: time.Minute, Progress: only(drain.EventBlocked, blocked)})
	assert.Equal(t, "late", awaitEvent(t, blocked).Name)
	adopt := []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":"1","controller":true}]}}`)
	_, err := c.CoreV1().Pods("shop").Patch(t.Context(), "late", types.MergePatchType, adopt, metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, <-done)
	assert.Equal(t, 1, c.triesOf("late"))
}
