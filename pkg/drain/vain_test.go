package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/refit-dev/refit/pkg/drain"
)

func TestAPodThatNothingMakesAnewIsNotEvictedInVain(t *testing.T) {
	always := policyv1.AlwaysAllow
	lenient := func(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
		b.Spec.UnhealthyPodEvictionPolicy = &always
		return b
	}
	for name, objects := range map[string][]runtime.Object{
		"an unwell one, and the well one could never go":                 {web("a", bare, crashing), web("b", bare), guarding("web", 0, 1, 1, 2)},
		"an unwell one that may always go, and the well one never could": {web("a", bare, crashing), web("b", bare), lenient(guarding("web", 0, 1, 2, 2))},
		"one of two for which there is room":                             {web("a", bare), web("b", bare), guarding("web", 1, 2, 1, 2)},
		"one of three for which there is room":                           {web("a", bare), web("b", bare), web("c", bare), guarding("web", 2, 3, 1, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, append(objects, pod("free"))...)
			c.setAlways("b", budgetError("web", 0)) // asked now and then where its budget can never let it go
			result, err := c.drain(t, drain.Options{UnmanagedPods: drain.ActionEvict, Timeout: time.Minute})
			b := requireBlocked(t, err)
			assert.Equal(t, drain.ReasonEvictionBlocked, b.Reason)
			assert.True(t, b.Permanent)
			assert.Contains(t, b.Message, "it can never let all of them go")
			assert.Equal(t, 1, result.Evicted, "the pod without a budget")
			for _, held := range []string{"a", "c"} {
				assert.Zero(t, c.triesOf(held), held)
			}
		})
	}
}

func TestAPodThatNothingMakesAnewGoesWhereItsBudgetCanLetAllOfThemGo(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []runtime.Object
		opts    drain.Options
	}{
		"others elsewhere are enough":   {objects: []runtime.Object{web("a", bare, crashing), web("b", onNode("w2")), guarding("web", 0, 1, 1, 2)}},
		"all are unwell and may always": {objects: []runtime.Object{web("a", bare, crashing), lenientWeb()}},
		"it has not started":            {objects: []runtime.Object{web("a", bare, inPhase(corev1.PodPending)), web("b", onNode("w2")), guarding("web", 0, 1, 2, 2)}},
		"by another policy": {objects: []runtime.Object{web("a", bare, crashing), web("b", bare), guarding("web", 0, 1, 1, 2)},
			opts: drain.Options{OnTimeout: drain.ActionProceed, Timeout: 500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.objects...)
			c.onlyPodsOfTheirNode()
			c.setAlways("b", budgetError("web", 0))
			tc.opts.UnmanagedPods = drain.ActionEvict
			_, err := c.drain(t, tc.opts)
			require.NoError(t, err)
			assert.Equal(t, 1, c.triesOf("a"))
		})
	}
}

func lenientWeb() *policyv1.PodDisruptionBudget {
	always := policyv1.AlwaysAllow
	b := guarding("web", 0, 0, 1, 1)
	b.Spec.UnhealthyPodEvictionPolicy = &always
	return b
}

func TestAPodThatNothingMakesAnewGoesAfterThoseForWhichItKeepsTheBudgetOpen(t *testing.T) {
	b := guarding("web", 1, 3, 2, 3)
	c := newCluster(t, web("a", bare), web("b"), b)
	c.onlyPodsOfTheirNode()
	done := c.begin(t, drain.Options{UnmanagedPods: drain.ActionEvict, Timeout: time.Minute})
	require.Eventually(t, func() bool { return c.triesOf("b") == 1 }, 10*time.Second, 5*time.Millisecond)
	b = b.DeepCopy() // another pod has come up elsewhere
	b.ResourceVersion = "2"
	c.updateBudget(t, b)
	require.NoError(t, <-done)
	require.Len(t, c.tries["a"], 1)
	assert.True(t, c.tries["a"][0].After(c.tries["b"][0]), "a is first by name")
}
