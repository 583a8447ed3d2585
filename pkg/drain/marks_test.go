package drain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

var (
	outdated = corev1.Taint{Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule}
	gpu      = corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule}
	soft     = corev1.Taint{Key: "spot", Effect: corev1.TaintEffectPreferNoSchedule}
	theirs   = corev1.Taint{Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectNoSchedule}
)

func TestTheTaintIsWrittenAndTakenOffAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		want   drain.Marks
		left   []corev1.Taint
		writes int
	}{
		"onto a bare node":                    {nil, drain.Marks{Outdated: true}, []corev1.Taint{outdated}, 1},
		"beside the taints of others":         {[]corev1.Taint{gpu, soft}, drain.Marks{Outdated: true}, []corev1.Taint{gpu, soft, outdated}, 1},
		"once":                                {[]corev1.Taint{outdated, gpu}, drain.Marks{Outdated: true}, []corev1.Taint{outdated, gpu}, 0},
		"off, and nothing else":               {[]corev1.Taint{gpu, outdated, soft}, drain.Marks{}, []corev1.Taint{gpu, soft}, 1},
		"off, as the last one":                {[]corev1.Taint{outdated}, drain.Marks{}, nil, 1},
		"not off where there is none":         {[]corev1.Taint{gpu}, drain.Marks{}, []corev1.Taint{gpu}, 0},
		"a key of ours with another effect":   {[]corev1.Taint{theirs}, drain.Marks{}, []corev1.Taint{theirs}, 0},
		"and next to one with another effect": {[]corev1.Taint{theirs}, drain.Marks{Outdated: true}, []corev1.Taint{theirs, outdated}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "1", Annotations: map[string]string{"a": "b"}}}
			node.Spec.Taints, node.Spec.Unschedulable = tc.taints, true
			client := fake.NewClientset(node)
			writes := 0
			client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
				writes++
				var body map[string]map[string]any
				require.NoError(t, json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &body))
				assert.Contains(t, body["metadata"], "resourceVersion", "on condition of what was read")
				assert.NotContains(t, body["spec"], "unschedulable")
				assert.NotContains(t, body["metadata"], "annotations")
				return false, nil, nil
			})
			require.NoError(t, drain.Mark(t.Context(), client, "w1", tc.want))
			now, err := client.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, tc.left, append([]corev1.Taint(nil), now.Spec.Taints...))
			assert.Equal(t, tc.writes, writes)
			assert.True(t, tc.want.On(now))
			assert.True(t, now.Spec.Unschedulable)
		})
	}
}

func TestTheAutoscalerIsToldOfANodeInFlightAndNobodysWordIsTakenOff(t *testing.T) {
	const said, by = v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationScaleDownDisabledBy
	type is map[string]string
	for name, tc := range map[string]struct {
		before   is
		inFlight string
		after    is
	}{
		"said, and marked as ours":                         {is{"a": "b"}, "g1", is{"a": "b", said: "true", by: "g1"}},
		"taken off":                                        {is{"a": "b", said: "true", by: "g1"}, "", is{"a": "b"}},
		"what a person has said stays":                     {is{said: "true"}, "g1", is{said: "true"}},
		"and so when the slot ends":                        {is{said: "true"}, "", is{said: "true"}},
		"what a person has changed stays":                  {is{said: "false", by: "g1"}, "", is{said: "false"}},
		"what a person has taken off is not written again": {is{by: "g1"}, "g1", is{by: "g1"}},
		"but for the next grant":                           {is{by: "g1"}, "g2", is{said: "true", by: "g2"}},
		"the next grant takes it over":                     {is{said: "true", by: "g1"}, "g2", is{said: "true", by: "g2"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", Annotations: tc.before}}
			client := fake.NewClientset(node)
			want := drain.Marks{InFlight: tc.inFlight}
			require.NoError(t, drain.Mark(t.Context(), client, "w1", want))
			now, err := client.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{})
			require.NoError(t, err)
			assert.EqualValues(t, tc.after, now.Annotations)
			assert.True(t, want.On(now), "nothing is left to write")
		})
	}
}

func TestTheBeginningAndTheEndOfAnOperationCarryTheMarksInTheSameWrite(t *testing.T) {
	n := nodeWith(false, "")
	n.Spec.Taints = []corev1.Taint{outdated}
	c := fake.NewClientset(n)
	writes := 0
	c.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		writes++
		return false, nil, nil
	})
	marks := func() drain.Marks {
		n, err := c.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		require.NoError(t, err)
		return drain.MarksOf(n)
	}
	_, err := drain.Cordon(t.Context(), c, node, "g1", drain.ExcludeFromLoadBalancers)
	require.NoError(t, err)
	assert.Equal(t, drain.Marks{InFlight: "g1"}, marks())
	require.NoError(t, drain.Mark(t.Context(), c, node, drain.Marks{InFlight: "g1"}), "there is nothing left to write")
	require.NoError(t, drain.Uncordon(t.Context(), c, node, "g1"))
	assert.Equal(t, drain.Marks{}, marks())
	assert.Equal(t, 2, writes)
}
