package drain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/pkg/drain"
)

func TestEachKindOfPodIsTreatedByTheDecisionTable(t *testing.T) {
	evictAll := drain.Options{UnmanagedPods: drain.ActionEvict, Timeout: 5 * time.Second}
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		objects []runtime.Object
		opts    drain.Options
		evicted bool
		reason  string
	}{
		"a managed pod is evicted":                           {pod: pod("a"), evicted: true},
		"a bare pod blocks":                                  {pod: pod("a", bare), reason: drain.ReasonUnmanagedPods},
		"a bare pod is evicted by policy":                    {pod: pod("a", bare), opts: evictAll, evicted: true},
		"a mirror pod stays":                                 {pod: pod("a", mirror)},
		"a bare mirror pod stays":                            {pod: pod("a", mirror, bare)},
		"a DaemonSet pod stays":                              {pod: pod("a", ofDaemonSet("cni")), objects: []runtime.Object{daemonSet("cni")}},
		"a DaemonSet pod with emptyDir stays":                {pod: pod("a", ofDaemonSet("cni"), emptyDir), objects: []runtime.Object{daemonSet("cni")}, opts: drain.Options{EmptyDir: drain.ActionFail}},
		"an orphaned DaemonSet pod blocks like a bare one":   {pod: pod("a", ofDaemonSet("gone")), reason: drain.ReasonUnmanagedPods},
		"an orphaned DaemonSet pod is evicted by the policy": {pod: pod("a", ofDaemonSet("gone")), opts: evictAll, evicted: true},
		"emptyDir is evicted":                                {pod: pod("a", emptyDir), evicted: true},
		"emptyDir blocks by policy":                          {pod: pod("a", emptyDir), opts: drain.Options{EmptyDir: drain.ActionFail}, reason: drain.ReasonEmptyDirPods},
		"a succeeded pod is ignored":                         {pod: pod("a", inPhase(corev1.PodSucceeded), bare)},
		"a failed pod is ignored":                            {pod: pod("a", inPhase(corev1.PodFailed), emptyDir)},
		"a pending pod is evicted":                           {pod: pod("a", inPhase(corev1.PodPending)), evicted: true},
		"our own pod stays":                                  {pod: pod("a", bare), opts: drain.Options{IsOwnPod: func(p *corev1.Pod) bool { return p.Name == "a" }}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, append(tc.objects, tc.pod, pod("other"))...)
			result, err := c.drain(t, tc.opts)
			if tc.reason != "" {
				b := requireBlocked(t, err)
				assert.Equal(t, tc.reason, b.Reason)
				assert.True(t, b.Permanent)
				require.Len(t, b.Pods, 1)
				assert.Equal(t, "a", b.Pods[0].Name)
				assert.Contains(t, b.Message, "shop/a")
				assert.Zero(t, c.allTries(), "nothing may be evicted by a drain that cannot end")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.evicted, c.triesOf("a") == 1)
			assert.Equal(t, 1, c.triesOf("other"))
			assert.Equal(t, c.allTries(), result.Evicted)
			assert.Empty(t, c.deletes)
		})
	}
}

func TestAnEmptyNodeIsDrainedAtOnce(t *testing.T) {
	c := newCluster(t)
	result, err := c.drain(t, drain.Options{})
	require.NoError(t, err)
	assert.Zero(t, result.Evicted)
}

func TestEvictionsCarryTheUIDOfThePodThatWasSeen(t *testing.T) {
	c := newCluster(t, pod("a"))
	_, err := c.drain(t, drain.Options{})
	require.NoError(t, err)
	assert.EqualValues(t, "uid-a", c.uids["a"])
}

func TestAPodThatIsGoneBeforeItsEvictionCountsAsGone(t *testing.T) {
	c := newCluster(t, pod("a"))
	c.always["a"] = apierrors.NewNotFound(corev1.Resource("pods"), "a")
	c.removeAfter(100*time.Millisecond, "a")
	result, err := c.drain(t, drain.Options{Timeout: 5 * time.Second})
	require.NoError(t, err)
	assert.Zero(t, result.Evicted)
	assert.Equal(t, 1, c.triesOf("a"))
}

func TestAPodWhoseNameAnotherOneHasTakenIsNoRefusal(t *testing.T) {
	c := newCluster(t, pod("a"))
	// In the API server's own words, which name the kind of a precondition and not its resource.
	c.answers["a"] = []error{apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, "a", errors.New("the UID in the precondition does not match"))}
	told := make(chan drain.Event, 10)
	_, err := c.drain(t, drain.Options{Timeout: 5 * time.Second, Progress: only(drain.EventBlocked, told)})
	require.NoError(t, err)
	assert.Empty(t, told)
}

func TestAReplacedPodOfTheSameNameIsDrainedToo(t *testing.T) {
	c := newCluster(t, pod("a"))
	again := pod("a")
	again.UID = "uid-second"
	c.answers["a"] = []error{apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("the UID in the precondition does not match"))}
	time.AfterFunc(3*time.Millisecond, func() {
		c.remove("a")
		_ = c.Tracker().Create(podsResource, again, "shop")
	})
	_, err := c.drain(t, drain.Options{Timeout: 5 * time.Second})
	require.NoError(t, err)
}

func TestALeavingPodIsAwaitedAndNotEvicted(t *testing.T) {
	for name, p := range map[string]*corev1.Pod{
		"managed":   pod("a", leavingSince(0)),
		"unmanaged": pod("a", bare, leavingSince(0)),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, p)
			c.removeAfter(300*time.Millisecond, "a")
			result, err := c.drain(t, drain.Options{Timeout: 5 * time.Second})
			require.NoError(t, err)
			assert.Equal(t, 1, result.Awaited)
			assert.Zero(t, c.allTries())
			assert.GreaterOrEqual(t, result.Duration, 250*time.Millisecond)
		})
	}
}

func TestAnOverdueDeletionIsSkippedOnlyByPolicy(t *testing.T) {
	opts := drain.Options{Timeout: time.Second, SkipWaitForDeleteTimeout: time.Minute}
	result, err := newCluster(t, pod("a", leavingSince(2*time.Minute))).drain(t, opts)
	require.NoError(t, err)
	require.Len(t, result.Remaining, 1)
	assert.Equal(t, "a", result.Remaining[0].Name)

	opts.SkipWaitForDeleteTimeout = 0
	_, err = newCluster(t, pod("a", leavingSince(2*time.Minute))).drain(t, opts)
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonPodsTerminating, b.Reason)
}

func TestAPodThatDoesNotEndBlocksTheDrainByName(t *testing.T) {
	c := newCluster(t, pod("a"))
	c.lingers["a"] = true
	_, err := c.drain(t, drain.Options{Timeout: 300 * time.Millisecond})
	b := requireBlocked(t, err)
	assert.Equal(t, drain.ReasonPodsTerminating, b.Reason)
	assert.False(t, b.Permanent)
	assert.Contains(t, b.Message, "shop/a")
	assert.Equal(t, 1, c.triesOf("a"), "an accepted eviction is not repeated")
}

func TestACancelledDrainIsNotABlockedOne(t *testing.T) {
	c := newCluster(t, pod("a"))
	c.lingers["a"] = true
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := drain.New(c, drain.Options{}).Quick().Drain(ctx, node)
	require.ErrorIs(t, err, context.Canceled)
	var b *drain.Blocked
	assert.NotErrorAs(t, err, &b)
}

func TestAPassingServerErrorIsRetried(t *testing.T) {
	c := newCluster(t, pod("a"))
	c.answers["a"] = []error{
		apierrors.NewInternalError(errors.New("etcd leader changed")),
		errors.New("dial tcp: connection refused"),
		apierrors.NewTooManyRequests("too many requests", 0),
	}
	result, err := c.drain(t, drain.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, 4, result.Requests)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	c := newCluster(t, pod("a"))
	c.answers["a"] = []error{apierrors.NewTooManyRequests("come back later", 1)}
	_, err := c.drain(t, drain.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	require.Len(t, c.tries["a"], 2)
	assert.GreaterOrEqual(t, c.tries["a"][1].Sub(c.tries["a"][0]), time.Second)
}

func TestANamespaceThatIsBeingDeletedIsAwaited(t *testing.T) {
	c := newCluster(t, pod("a"))
	c.always["a"] = terminatingError()
	c.removeAfter(300*time.Millisecond, "a")
	_, err := c.drain(t, drain.Options{Timeout: 5 * time.Second})
	require.NoError(t, err)
}

func TestMissingPermissionsEndTheDrainAtOnceAndNameWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		break_ func(*cluster)
		names  string
	}{
		"evictions": {func(c *cluster) { c.denyAll = true; c.always["a"] = forbidden("pods") }, "pods/eviction"},
		"pods":      {deny("list", "pods"), "pods of node"},
		"budgets":   {deny("list", "poddisruptionbudgets"), "poddisruptionbudgets"},
		"daemonsets": {func(c *cluster) {
			deny("get", "daemonsets")(c)
			_ = c.Tracker().Add(pod("d", ofDaemonSet("cni")))
		}, "daemonsets.apps"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod("a"))
			tc.break_(c)
			_, err := c.drain(t, drain.Options{Timeout: time.Hour})
			b := requireBlocked(t, err)
			assert.Equal(t, drain.ReasonMissingPermission, b.Reason)
			assert.True(t, b.Permanent)
			assert.Contains(t, b.Message, tc.names)
			assert.LessOrEqual(t, c.allTries(), 1, "no storm of retries")
		})
	}
}

func deny(verb, resource string) func(*cluster) {
	return func(c *cluster) {
		c.PrependReactor(verb, resource, func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, forbidden(resource)
		})
	}
}

func TestAnAdmissionRefusalIsNotAMissingPermission(t *testing.T) {
	status := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "this database moves first"}}
	}
	for name, tc := range map[string]struct {
		answer error
		reason string
	}{
		"a webhook's 403":                           {forbidden("pods"), drain.ReasonEvictionForbidden},
		"a policy's 422":                            {status(422), drain.ReasonEvictionForbidden},
		"a webhook's 400":                           {status(400), drain.ReasonEvictionForbidden},
		"a webhook's 418":                           {status(418), drain.ReasonEvictionForbidden},
		"a webhook's 404":                           {status(404), drain.ReasonEvictionForbidden},
		"a webhook's 409":                           {status(409), drain.ReasonEvictionForbidden},
		"a webhook's own not found":                 {apierrors.NewNotFound(corev1.Resource("tickets"), "a"), drain.ReasonEvictionForbidden},
		"a webhook's own conflict":                  {apierrors.NewConflict(corev1.Resource("tickets"), "a", errors.New("it is open")), drain.ReasonEvictionForbidden},
		"a proxy's 404 is not":                      {apierrors.NewGenericServerResponse(404, "post", corev1.Resource("pods"), "a", "no such page", 0, true), drain.ReasonEvictionFailed},
		"a credential that is being renewed is not": {status(401), drain.ReasonEvictionFailed},
		"a request that timed out is not":           {status(408), drain.ReasonEvictionFailed},
		"a server that is overloaded is not":        {status(503), drain.ReasonEvictionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod("a"))
			c.always["a"] = tc.answer
			_, err := c.drain(t, drain.Options{Timeout: 300 * time.Millisecond})
			assert.Equal(t, tc.reason, requireBlocked(t, err).Reason)
		})
	}
}

func TestAPodThatCannotBeJudgedYetHoldsTheDrainUpWithoutEndingIt(t *testing.T) {
	c := newCluster(t, pod("a"), daemonSet("cni"))
	c.lingers["a"] = true
	failures := 3
	c.PrependReactor("get", "daemonsets", func(k8stesting.Action) (bool, runtime.Object, error) {
		failures--
		return failures >= 0, nil, apierrors.NewInternalError(errors.New("etcd leader changed"))
	})
	time.AfterFunc(100*time.Millisecond, func() {
		_ = c.Tracker().Create(podsResource, pod("late", ofDaemonSet("cni")), "shop")
		c.remove("a")
	})
	_, err := c.drain(t, drain.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	assert.Negative(t, failures, "it was asked again until there was an answer")
}

func TestCheckFindsWhatWouldBlockAndEvictsNothing(t *testing.T) {
	c := newCluster(t, pod("a", bare), pod("b"))
	b := requireBlocked(t, drain.New(c, drain.Options{}).Check(t.Context(), node))
	assert.Equal(t, drain.ReasonUnmanagedPods, b.Reason)
	assert.Zero(t, c.allTries())

	c = newCluster(t, pod("b"))
	require.NoError(t, drain.New(c, drain.Options{}).Check(t.Context(), node))
	assert.Zero(t, c.allTries())
}

func TestThePodThatDrainsGoesWhenAllOthersHaveLeft(t *testing.T) {
	c := newCluster(t, pod("a"), pod("b"), pod("c"))
	c.lingers["c"] = true
	c.removeAfter(300*time.Millisecond, "c")
	_, err := c.drain(t, drain.Options{Timeout: 5 * time.Second, EvictLast: func(p *corev1.Pod) bool { return p.Name == "a" }})
	require.NoError(t, err)
	require.Len(t, c.tries["a"], 1)
	assert.GreaterOrEqual(t, c.tries["a"][0].Sub(c.tries["c"][0]), 250*time.Millisecond, "a waited for c to leave")
}

func TestAPodThatGoesLastIsNotTheReasonWhyADrainDidNotEnd(t *testing.T) {
	c := newCluster(t, pod("a"), pod("b"))
	c.lingers["b"] = true
	_, err := c.drain(t, drain.Options{Timeout: time.Second, EvictLast: func(p *corev1.Pod) bool { return p.Name == "a" }})
	var blocked *drain.Blocked
	require.ErrorAs(t, err, &blocked)
	assert.Equal(t, drain.ReasonPodsTerminating, blocked.Reason)
	assert.Contains(t, blocked.Message, "is evicted when those before it have left")
	assert.Empty(t, c.tries["a"])
}
