package controllers

import (
	"fmt"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestByHandOneMachineGoesAfterItIsNamedAndNoOther(t *testing.T) {
	c := threeMachines(t, &fault{})
	c.strategy("workers", func(s *v1alpha1.RolloutStrategy) { s.Type = v1alpha1.StrategyManual })
	c.run()
	w1, w2 := c.hosts[1], c.hosts[2]
	assert.Empty(t, append(w1.runs, w2.runs...))
	assert.Contains(t, c.line("w2"), "AwaitingNext")

	m := &v1alpha1.Machine{}
	require.NoError(t, c.api.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "w2"}, m))
	m.Annotations = map[string]string{v1alpha1.AnnotationNext: fmt.Sprint(m.Generation)}
	require.NoError(t, c.api.Update(t.Context(), m))
	c.run()
	assert.Empty(t, w1.runs)
	assert.Len(t, w2.runs, 1)
}
