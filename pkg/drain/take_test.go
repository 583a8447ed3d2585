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
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

func (c *cluster) node(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

func assertGivenBack(t *testing.T, n *corev1.Node) {
	t.Helper()
	assert.False(t, n.Spec.Unschedulable)
	assert.NotContains(t, n.Labels, corev1.LabelNodeExcludeBalancers)
	assert.NotContains(t, n.Annotations, v1alpha1.AnnotationCordonedBy)
	assert.NotContains(t, n.Annotations, v1alpha1.AnnotationExcludedBy)
}

func TestAFailedOrAbortedTakeGivesTheNodeBackAtOnce(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		c := newCluster(t, pod("a", bare))
		_, err := drain.New(c, drain.Options{}).Take(t.Context(), node, "g1")
		assert.Equal(t, drain.ReasonUnmanagedPods, requireBlocked(t, err).Reason)
		assertGivenBack(t, c.node(t))
	})
	t.Run("aborted", func(t *testing.T) {
		c := newCluster(t, pod("a"))
		c.lingers["a"] = true
		ctx, cancel := context.WithCancel(t.Context())
		_, err := drain.New(c, drain.Options{Progress: func(drain.Event) { cancel() }}).Take(ctx, node, "g1")
		require.ErrorIs(t, err, context.Canceled)
		assertGivenBack(t, c.node(t))
	})
	t.Run("failed, while the API server is away for a moment", func(t *testing.T) {
		for name, verb := range map[string]string{"when the node is read": "get", "when it is written": "patch"} {
			t.Run(name, func(t *testing.T) {
				c := newCluster(t, pod("a", bare))
				away := 0
				c.PrependReactor(verb, "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
					n, err := c.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", node)
					cordoned := err == nil && n.(*corev1.Node).Spec.Unschedulable
					if !cordoned || away == 4 {
						return false, nil, nil
					}
					away++
					return true, nil, errors.New("dial tcp: connection refused")
				})
				_, err := drain.New(c, drain.Options{}).Quick().Take(t.Context(), node, "g1")
				require.Error(t, err)
				assert.Equal(t, 4, away)
				assertGivenBack(t, c.node(t))
			})
		}
	})
	t.Run("succeeded", func(t *testing.T) {
		c := newCluster(t, pod("a"))
		_, err := drain.New(c, drain.Options{}).Take(t.Context(), node, "g1")
		require.NoError(t, err)
		assert.True(t, c.node(t).Spec.Unschedulable)
		assert.Contains(t, c.node(t).Labels, corev1.LabelNodeExcludeBalancers)
		require.NoError(t, drain.Uncordon(t.Context(), c, node, "g1"))
		assertGivenBack(t, c.node(t))
	})
	t.Run("made schedulable by someone since", func(t *testing.T) {
		c := newCluster(t, nodeWith(false, "g1"), pod("a"))
		_, err := drain.New(c, drain.Options{}).Take(t.Context(), node, "g1")
		assert.Equal(t, drain.ReasonUncordoned, requireBlocked(t, err).Reason)
		assert.Zero(t, c.allTries())
	})
}

func TestNoPodIsEvictedBeforeLoadBalancersHaveHadTheirTime(t *testing.T) {
	c := newCluster(t, pod("a"))
	waiting := make(chan drain.Event, 10)
	started := time.Now()
	_, err := c.drain(t, drain.Options{LoadBalancerDelay: 500 * time.Millisecond, Progress: only(drain.EventWaiting, waiting)})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, c.tries["a"][0].Sub(started), 500*time.Millisecond)
	assert.Equal(t, drain.ReasonLoadBalancers, (<-waiting).Reason)
}

// excludedNode is cordoned by the owner of the marker too: that is one write.
func excludedNode(label bool, marker string) *corev1.Node {
	n := nodeWith(marker != "", marker)
	n.Labels = map[string]string{}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	if label {
		n.Labels[corev1.LabelNodeExcludeBalancers] = ""
	}
	if marker != "" {
		n.Annotations[v1alpha1.AnnotationExcludedBy] = marker
	}
	return n
}

func TestOnlyOurOwnExclusionFromLoadBalancersIsMarkedAndTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		before    *corev1.Node
		lb        drain.LoadBalancers
		during    bool   // labelled
		marker    string // during
		afterward bool   // labelled after Uncordon
	}{
		"not excluded":                         {excludedNode(false, ""), drain.ExcludeFromLoadBalancers, true, "g1", false},
		"not to be excluded":                   {excludedNode(false, ""), drain.KeepInLoadBalancers, false, "", false},
		"excluded by someone else":             {excludedNode(true, ""), drain.ExcludeFromLoadBalancers, true, "", true},
		"excluded by an earlier grant":         {excludedNode(true, "g0"), drain.ExcludeFromLoadBalancers, true, "g1", false},
		"ours already":                         {excludedNode(true, "g1"), drain.ExcludeFromLoadBalancers, true, "g1", false},
		"someone has taken ours off meanwhile": {excludedNode(false, "g1"), drain.ExcludeFromLoadBalancers, false, "g1", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset(tc.before)
			read := func() *corev1.Node {
				n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
				require.NoError(t, err)
				return n
			}
			labelled := func() bool { _, is := read().Labels[corev1.LabelNodeExcludeBalancers]; return is }
			_, err := drain.Cordon(t.Context(), c, node, "g1", tc.lb)
			require.NoError(t, err)
			assert.True(t, read().Spec.Unschedulable)
			assert.Equal(t, tc.during, labelled())
			assert.Equal(t, tc.marker, read().Annotations[v1alpha1.AnnotationExcludedBy])
			require.NoError(t, drain.Uncordon(t.Context(), c, node, "g1"))
			assert.False(t, read().Spec.Unschedulable)
			assert.Equal(t, tc.afterward, labelled())
			assert.NotEqual(t, "g1", read().Annotations[v1alpha1.AnnotationExcludedBy])
		})
	}
}

func TestWhatHasToBeUndoneIsTriedUntilThereIsAnAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		tries  int
	}{
		"a conflict is none":                   {apierrors.NewConflict(corev1.Resource("nodes"), node, errors.New("changed")), 3},
		"a connection refused is none":         {errors.New("dial tcp: connection refused"), 3},
		"an overloaded server is none":         {apierrors.NewServiceUnavailable("later"), 3},
		"a credential that is renewed is none": {apierrors.NewUnauthorized("expired"), 3},
		"a missing role is one":                {forbidden("nodes"), 1},
		"that it is gone is one":               {apierrors.NewNotFound(corev1.Resource("nodes"), node), 1},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := drain.Persist(t.Context(), func() error {
				if tries++; tries == 3 {
					return nil
				}
				return tc.answer
			})
			assert.Equal(t, tc.tries, tries)
			assert.Equal(t, tc.tries == 3, err == nil)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := drain.Persist(ctx, func() error { return errors.New("connection refused") })
	require.ErrorContains(t, err, "connection refused", "what was met, not that the time is over")
}
