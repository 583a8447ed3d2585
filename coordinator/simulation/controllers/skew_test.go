package controllers

import (
	"context"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// A kubelet that somebody has brought past its API servers is told of until they have followed.
func TestAKubeletPastItsAPIServersIsAConditionUntilTheyFollow(t *testing.T) {
	c := threeMachines(t, &fault{})
	c.hosts[1].kubelet = after
	violated := func(name string) bool {
		m := &v1alpha1.Machine{}
		require.NoError(t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, m))
		return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionSkewViolated)
	}
	rounds := func(what string, is func() bool) { // the invariants do not hold until the end
		t.Helper()
		for i := 0; !is(); i++ {
			require.Less(t, i, mostRounds, what)
			c.round()
		}
	}
	rounds("the condition", func() bool { return violated("w1") })
	assert.False(t, violated("cp1"))
	assert.False(t, violated("w2"))
	assert.Equal(t, before, c.hosts[0].api)
	rounds("its end", func() bool { return !violated("w1") })
	assert.Equal(t, after, c.hosts[0].api)
	c.run()
}
