package nodemarks_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/nodemarks"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const worker = v1alpha1.RoleWorker

func judged(as metav1.ConditionStatus) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionUpToDate, Status: as, ObservedGeneration: m.Generation,
		})
	})
}

func marked(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule})
}

func TestNodesThatAwaitTheirDrainAreMarkedAndNoOthers(t *testing.T) {
	outdated, upToDate := judged(metav1.ConditionFalse), judged(metav1.ConditionTrue)
	unplanned := Of(func(m *v1alpha1.Machine) { m.Status.Plan = nil })
	other := func(b *Builder) *Builder { return b.Machine("w2", "w", worker, outdated) }
	pool := func(edits ...func(*v1alpha1.MachineDeployment)) *Builder { return New().Deployment("w", edits...) }
	for name, tc := range map[string]struct {
		fleet *Builder
		want  bool // of w1
	}{
		"outdated, and to be drained":            {other(pool().Machine("w1", "w", worker, outdated)), true},
		"the mark itself does not end it":        {other(pool().Machine("w1", "w", worker, outdated, marked)), true},
		"nor does one on the other node":         {pool().Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, outdated, marked), true},
		"in no pool":                             {New().Machine("w1", "", worker, outdated).Machine("w2", "", worker), true},
		"up to date":                             {other(pool().Machine("w1", "w", worker, upToDate)), false},
		"not judged yet":                         {other(pool().Machine("w1", "w", worker)), false},
		"judged on an earlier spec":              {other(pool().Machine("w1", "w", worker, outdated, Of(func(m *v1alpha1.Machine) { m.Generation = 2 }))), false},
		"in a slot":                              {other(pool().Machine("w1", "w", worker, outdated, InSlot(v1alpha1.DisruptionDrain))), false},
		"to be restarted only":                   {other(pool().Machine("w1", "w", worker, outdated, Plans(v1alpha1.DisruptionRestart))), false},
		"not planned yet, and others drain":      {other(pool().Machine("w1", "w", worker, outdated, unplanned)), true},
		"not planned yet, and one is drained":    {pool().Machine("w1", "w", worker, outdated, unplanned).Machine("w2", "w", worker, outdated, unplanned, InSlot(v1alpha1.DisruptionDrain)), true},
		"not planned yet, and others restart":    {pool().Machine("w1", "w", worker, outdated, unplanned).Machine("w2", "w", worker, outdated, Plans(v1alpha1.DisruptionRestart)), false},
		"not planned yet, and another pool does": {New().Deployment("w").Deployment("x").Machine("w1", "w", worker, outdated, unplanned).Machine("x1", "x", worker, outdated), false},
		"out of service":                         {other(pool().Machine("w1", "w", worker, outdated, Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService }))), false},
		"being deleted":                          {other(pool().Machine("w1", "w", worker, outdated, Of(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: Now} }))), false},
		"paused: its time comes":                 {other(pool(func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true }).Machine("w1", "w", worker, outdated)), true},
		"aborted": {other(pool(func(d *v1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{v1alpha1.AnnotationAbort: ""}
		}).Machine("w1", "w", worker, outdated)), false},
		"the only node":                      {New().Deployment("w").Machine("w1", "w", worker, outdated), false},
		"the only node that takes pods":      {pool().Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, Cordoned), false},
		"the only node without other taints": {pool().Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, Tainted("gpu")), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			assert.Equal(t, tc.want, nodemarks.Wanted(f, f.Find("w1")).Outdated)
		})
	}
}

func TestTheNodesOfSlotsAreKeptFromTheAutoscalerAndNoOthers(t *testing.T) {
	f := New().Machine("w1", "", worker, InSlot(v1alpha1.DisruptionRestart)).Machine("w2", "", worker).Build()
	assert.Equal(t, "g-w1", nodemarks.Wanted(f, f.Find("w1")).InFlight)
	assert.Empty(t, nodemarks.Wanted(f, f.Find("w2")).InFlight)
}
