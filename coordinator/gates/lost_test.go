package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func templated(m *v1alpha1.Machine) {
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fleet.TemplateManager, Operation: metav1.ManagedFieldsOperationApply}}
}

// lost is how a pool looks after it was seen without machines.
func lost(d *v1alpha1.MachineDeployment) {
	d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: fleet.ReasonNoMachines}}
}

func had(d *v1alpha1.MachineDeployment) { d.Status.Machines = 3 }

func TestAMachineWhosePoolHasLostAllOfItsMachinesWaits(t *testing.T) {
	base := func() *Builder { return New().Machine("cp1", "", plane) }
	partial := func(b *Builder) *Builder { b.Objects.Partial = true; return b }
	for name, tc := range map[string]struct {
		fleet *Builder
		waits bool
	}{
		"its pool had machines a moment ago":       {base().Deployment("w", had).Machine("w1", "typo", worker, Of(templated)), true},
		"its pool is known to have lost them":      {base().Deployment("w", lost).Machine("w1", "typo", worker, Of(templated)), true},
		"known, among some machines only":          {partial(base().Deployment("w", lost).Machine("w1", "typo", worker, Of(templated))), true},
		"some machines only say nothing of a pool": {partial(base().Deployment("w", had).Machine("w1", "typo", worker, Of(templated))), false},
		"a pool that never had one":                {base().Deployment("w").Machine("w1", "typo", worker, Of(templated)), false},
		"a pool that keeps others":                 {base().Deployment("w", had).Machine("w1", "typo", worker, Of(templated)).Machine("w2", "w", worker), false},
		"a machine that has no template's fields":  {base().Deployment("w", had).Machine("w1", "typo", worker), false},
		"a machine of another pool":                {base().Deployment("w", had).Deployment("x").Machine("w1", "x", worker, Of(templated)), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := gates.Check(f, f.Find("w1"))
			if !tc.waits {
				assert.Nil(t, v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, gates.ReasonNoMachines, v.Reason)
			assert.Contains(t, v.Message, "these select no Machine at all: w;")
			assert.Equal(t, v, gates.Withdrawn(f, f.Find("w1")), "an unaccepted slot is taken back, too")
		})
	}
}

func TestAnAbortSaysWhyAndWhatGoesOn(t *testing.T) {
	f := New().Machine("cp1", "", plane).Deployment("w", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Paused, d.Annotations = true, map[string]string{v1alpha1.AnnotationAbort: "bad kernel"}
	}).Machine("w1", "w", worker).Build()
	v := gates.Check(f, f.Find("w1"))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonPaused, v.Reason)
	assert.Contains(t, v.Message, "aborted (bad kernel): kubectl refit resume w")
}
