package install_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/install"
)

func TestNodesAreLeftAsOthersHaveMadeThem(t *testing.T) {
	ours := corev1.Taint{Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule}
	theirs := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	node := func(name string, cordoned bool, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned, Taints: taints}}
	}
	kube := fake.NewClientset(node("a", false, theirs, ours), node("b", true, theirs))
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	require.NoError(t, install.ClearNodes(t.Context(), kube, say))
	require.NoError(t, install.ClearNodes(t.Context(), kube, say), "a second time finds nothing")
	assert.Equal(t, []string{"Node a: Refit's marks taken off"}, said)
	for name, cordoned := range map[string]bool{"a": false, "b": true} {
		n, err := kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, []corev1.Taint{theirs}, n.Spec.Taints)
		assert.Equal(t, cordoned, n.Spec.Unschedulable)
	}
}
