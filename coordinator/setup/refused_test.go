package setup

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A template that was refused is one no more: the canary gate reads that.
func TestTheRolloutHearsThatATemplateIsRefusedNoMore(t *testing.T) {
	refused := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	refused.Status.ObservedGeneration = 1
	refused.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: fleet.ReasonTemplateRefused}}
	fine := refused.DeepCopy()
	fine.Status.Conditions[0].Status, fine.Status.Conditions[0].Reason = metav1.ConditionTrue, "RollingOut"
	pool := func(d *v1alpha1.MachineDeployment) *fleet.Pool { return &fleet.Pool{Deployment: d} }
	require.False(t, pool(refused).TemplateWritten())
	require.True(t, pool(fine).TemplateWritten())
	assert.True(t, poolChanged().Update(event.UpdateEvent{ObjectOld: refused, ObjectNew: fine}))
}
