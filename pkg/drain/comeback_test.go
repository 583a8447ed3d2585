package drain_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

func tolerating(key string, operator corev1.TolerationOperator, effect corev1.TaintEffect) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: operator, Effect: effect})
	}
}

func ofController(uid types.UID) podOption {
	return func(p *corev1.Pod) { p.OwnerReferences[0].UID = uid }
}

// putBack has a controller of this UID put a pod onto the node for each one that is evicted, as often as it says.
func (c *cluster) putBack(uid types.UID, most int32, options ...podOption) {
	var made atomic.Int32
	c.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if n := made.Add(1); a.GetSubresource() == "eviction" && n <= most {
			next := pod(fmt.Sprintf("again-%d", n), append(options, ofController(uid))...)
			if err := c.Tracker().Create(podsResource, next, "shop"); err != nil { // while the other one still ends
				return true, nil, err
			}
		}
		return false, nil, nil
	})
}

func TestPodsThatComeBackAreNotEvictedAgainAndAgain(t *testing.T) {
	tolerates := tolerating(corev1.TaintNodeUnschedulable, corev1.TolerationOpExists, corev1.TaintEffectNoSchedule)
	for name, tc := range map[string]struct {
		options []podOption
		says    string
	}{
		"by their nodeName":  {says: "spec.nodeName"},
		"by their tolerance": {options: []podOption{tolerates}, says: "a toleration of node.kubernetes.io/unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod("a", append(tc.options, ofController("rs-1"))...))
			c.putBack("rs-1", 1000, tc.options...)
			events := make(chan drain.Event, 100)
			_, err := c.drain(t, drain.Options{Timeout: time.Hour, Progress: only(drain.EventBlocked, events)})
			b := requireBlocked(t, err)
			assert.Equal(t, drain.ReasonPodsComeBack, b.Reason)
			assert.True(t, b.Permanent)
			assert.Contains(t, b.Message, "ReplicaSet rs puts a pod onto the cordoned node again")
			assert.Contains(t, b.Message, tc.says)
			assert.LessOrEqual(t, c.allTries(), 3)
			assert.True(t, (<-events).Lasting)
		})
	}
}

func TestPodsThatComeBackFollowThePolicyAtTheTimeout(t *testing.T) {
	for _, action := range []drain.Action{drain.ActionProceed, drain.ActionDelete} {
		t.Run(string(action), func(t *testing.T) {
			c := newCluster(t, pod("a", ofController("rs-1")))
			c.putBack("rs-1", 1000)
			result, err := c.drain(t, drain.Options{Timeout: time.Second, OnTimeout: action})
			assert.LessOrEqual(t, c.allTries(), 3)
			assert.Empty(t, c.deletes)
			if action == drain.ActionDelete {
				assert.Equal(t, drain.ReasonPodsComeBack, requireBlocked(t, err).Reason)
				return
			}
			require.NoError(t, err)
			require.Len(t, result.Remaining, 1)
			assert.Equal(t, drain.ReasonPodsComeBack, result.Remaining[0].Reason)
		})
	}
}

func TestAPodThatComesBackOnceIsEvictedAgain(t *testing.T) {
	c := newCluster(t, pod("a", ofController("rs-1")), pod("b", ofController("rs-1")))
	c.putBack("rs-1", 1)
	result, err := c.drain(t, drain.Options{Timeout: 5 * time.Second})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, result.Evicted, 2)
}

func TestAForecastWarnsOfPodsThatMayComeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		says string
	}{
		"the toleration of a cordon":     {pod("a", tolerating(corev1.TaintNodeUnschedulable, corev1.TolerationOpExists, corev1.TaintEffectNoSchedule)), "a toleration of node.kubernetes.io/unschedulable"},
		"one of every effect":            {pod("a", tolerating(corev1.TaintNodeUnschedulable, corev1.TolerationOpEqual, "")), "a toleration of node.kubernetes.io/unschedulable"},
		"one of everything":              {pod("a", tolerating("", corev1.TolerationOpExists, "")), "a toleration of every taint"},
		"one of another effect":          {pod: pod("a", tolerating("", corev1.TolerationOpExists, corev1.TaintEffectNoExecute))},
		"one of another taint":           {pod: pod("a", tolerating("example.com/gpu", corev1.TolerationOpExists, ""))},
		"no toleration":                  {pod: pod("a")},
		"a pod that nothing would renew": {pod: pod("a", bare, tolerating("", corev1.TolerationOpExists, ""))},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := drain.New(newCluster(t, tc.pod), drain.Options{UnmanagedPods: drain.ActionEvict}).Forecast(t.Context(), node)
			require.NoError(t, err)
			require.Len(t, f.Pods, 1)
			assert.Equal(t, drain.OutlookNow, f.Outlook)
			if tc.says == "" {
				assert.Empty(t, f.Pods[0].Warning)
				return
			}
			assert.Contains(t, f.Pods[0].Warning, tc.says)
			assert.Contains(t, f.Message, "warning: shop/a: ReplicaSet rs may put its replacement onto the cordoned node again")
		})
	}
}
