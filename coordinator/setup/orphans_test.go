package setup

import (
	"context"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/nodemarks"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Its Machine was forced out while no coordinator was there: only the Node tells.
func TestAMarkedNodeWithoutAMachineIsLookedAtBesideOthersThatHaveOne(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	m := mapper{changes: &fleet.Changes{}, cache: fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&v1alpha1.Machine{}, indexName, func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w1"}}).Build()}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone", Annotations: map[string]string{v1alpha1.AnnotationCordonedBy: v1alpha1.CordonStandby}}}
	n.Spec.Unschedulable = true
	assert.Contains(t, m.markersOfNode(context.Background(), n), requestFor(nodemarks.Orphans))
}
