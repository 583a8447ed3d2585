package rollout

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheNextPassComesWhenAWindowOpensOrCloses(t *testing.T) {
	within := func(schedule string) func(*v1alpha1.MachineDeployment) {
		return func(d *v1alpha1.MachineDeployment) {
			d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{
				Windows: []v1alpha1.Window{{Schedule: schedule, Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Berlin"}},
			}}
		}
	}
	later := Of(func(m *v1alpha1.Machine) {
		m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "DrainBlocked", Failure: v1alpha1.Failure{NextRetryTime: &metav1.Time{Time: Now.Add(time.Minute)}}}
	})
	byZone := func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{TopologyKey: "zone"}}
	}
	away := func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(Now.Add(-time.Minute))
	}
	for name, tc := range map[string]struct {
		fleet *Builder
		want  time.Duration
	}{
		"without windows":                   {New().Deployment("w").Machine("w1", "w", v1alpha1.RoleWorker), 0},
		"at the very opening":               {New().Deployment("w", within("0 22 * * *")).Machine("w1", "w", v1alpha1.RoleWorker), 8 * time.Hour},
		"at the close of an open one":       {New().Deployment("w", within("30 13 * * *")).Machine("w1", "w", v1alpha1.RoleWorker), 30 * time.Minute},
		"the first of two pools":            {New().Deployment("v", within("0 23 * * *")).Deployment("w", within("0 22 * * *")).Machine("v1", "v", v1alpha1.RoleWorker).Machine("w1", "w", v1alpha1.RoleWorker), 8 * time.Hour},
		"unless a retry is due before":      {New().Deployment("w", within("0 22 * * *")).Machine("w1", "w", v1alpha1.RoleWorker, later), time.Minute},
		"never for a window that is broken": {New().Deployment("w", within("0 22 30 2 *")).Machine("w1", "w", v1alpha1.RoleWorker), 0},
		"nor where nobody waits for it":     {New().Deployment("w", within("0 22 * * *")).Machine("w1", "w", v1alpha1.RoleWorker, Of(func(m *v1alpha1.Machine) { m.Status.Plan = nil })), 0},
		"when a node is out of sight":       {New().Deployment("w", byZone).Machine("w1", "w", v1alpha1.RoleWorker, away), 4 * time.Minute},
		"which matters to domains only":     {New().Deployment("w").Machine("w1", "w", v1alpha1.RoleWorker, away), 0},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, nextMoment(tc.fleet.Build())) })
	}
}
