package setup

import (
	"context"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Pods go to any Node of the cluster, and so a Node that takes pods again ends what holds machines of all namespaces.
func TestANodeThatTakesPodsAgainConcernsTheNamespacesWhosePodsItMayTake(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	machine := func(ns, name string) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	m := mapper{changes: &fleet.Changes{}, cache: fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&v1alpha1.Machine{}, indexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(machine("a", "w1"), machine("b", "w2")).Build()}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	assert.Contains(t, m.namespacesOfNode(context.Background(), n), requestFor("b"))
}
