package rollout

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/standby"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The standby takes over for a machine that has been away for five minutes: time alone decides that.
func TestThePassComesAtWhichAStandbyTakesOverForAMachineThatIsLost(t *testing.T) {
	two := int32(1)
	replicas := func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = &two }
	awayFor := func(d time.Duration) func(*v1alpha1.Machine, *corev1.Node, *v1alpha1.LedgerSpec) {
		return func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
			n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(Now.Add(-d))
		}
	}
	stands := func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
		n.Spec.Unschedulable = true
		n.Annotations = map[string]string{v1alpha1.AnnotationCordonedBy: v1alpha1.CordonStandby}
	}
	now := New().Deployment("w", replicas).Machine("w1", "w", v1alpha1.RoleWorker, awayFor(time.Minute)).Machine("w2", "w", v1alpha1.RoleWorker, stands).Build()
	later := New().Deployment("w", replicas).Machine("w1", "w", v1alpha1.RoleWorker, awayFor(5*time.Minute)).Machine("w2", "w", v1alpha1.RoleWorker, stands).Build()
	require.True(t, standby.Roles(now)["w2"].Standby)
	require.False(t, standby.Roles(later)["w2"].Standby, "four minutes later it is to serve, and nothing but time has changed")
	assert.Equal(t, 4*time.Minute, nextMoment(now))
}
