package setup

import (
	"context"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/nodemarks"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Its Machine was forced out while no coordinator was there: only the Node tells.
func TestAMarkedNodeWithoutAMachineIsLookedAtBesideOthersThatHaveOne(t *testing.T) {
	m := mapperOf(t, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w1"}})
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone", Annotations: map[string]string{v1alpha1.AnnotationCordonedBy: v1alpha1.CordonStandby}}}
	n.Spec.Unschedulable = true
	assert.Contains(t, m.markersOfNode(context.Background(), n), requestFor(nodemarks.Orphans))
}
