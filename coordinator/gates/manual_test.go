package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyAMachineThatIsNamedForItsSpecGoesByHand(t *testing.T) {
	byHand := func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyManual}
	}
	named := func(value string) Edit {
		return Of(func(m *v1alpha1.Machine) {
			m.Namespace, m.Generation, m.Status.Assignment.Generation = "refit", 5, 5
			m.Annotations = map[string]string{v1alpha1.AnnotationNext: value}
		})
	}
	of := func(edits ...Edit) *fleet.Fleet {
		return New().Machine("cp1", "", plane).Deployment("w", byHand).Machine("w1", "w", worker, edits...).Machine("w2", "w", worker).Build()
	}
	f := of(named("5"))
	assert.Nil(t, gates.Check(f, f.Find("w1")))
	assert.Nil(t, gates.Withdrawn(f, f.Find("w1")))
	v := gates.Check(f, f.Find("w2"))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonAwaitingNext, v.Reason)

	for _, value := range []string{"4", "", "05", "true"} {
		f = of(named(value), InSlot(v1alpha1.DisruptionDrain))
		v = gates.Check(f, f.Find("w1"))
		require.NotNil(t, v, value)
		assert.Equal(t, gates.ReasonAwaitingNext, v.Reason)
		assert.Contains(t, v.Message, "kubectl annotate machine w1 -n refit refit.dev/next=5 --overwrite")
		assert.Contains(t, v.Message, `"`+value+`"`)
		assert.NotNil(t, gates.Withdrawn(f, f.Find("w1")), "what was named for another spec is taken back")
	}
}

func TestAMachineThatIsNamedStillWaitsForThePool(t *testing.T) {
	f := New().Machine("cp1", "", plane).Deployment("w", func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyManual}
	}).Machine("w1", "w", worker, Of(func(m *v1alpha1.Machine) { m.Annotations = map[string]string{v1alpha1.AnnotationNext: "1"} })).
		Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Build()
	v := gates.Check(f, f.Find("w1"))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonBudgetExhausted, v.Reason)
}
