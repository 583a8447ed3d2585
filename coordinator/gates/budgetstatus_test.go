package gates_test

import (
	"fmt"
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestABudgetsStatusCountsAsItsGateDoes(t *testing.T) {
	most := func(n int32) func(*v1alpha1.MachineDisruptionBudgetSpec) {
		return func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MaxUnavailable = ptrTo(intstr.FromInt32(n)) }
	}
	three := func(edits ...Edit) *Builder {
		return New().Deployment("w").Machine("w1", "w", v1alpha1.RoleWorker).Machine("w2", "w", v1alpha1.RoleWorker, edits...).Machine("w3", "w", v1alpha1.RoleWorker)
	}
	outOfService := Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService })
	type status = v1alpha1.MachineDisruptionBudgetStatus
	for name, tc := range map[string]struct {
		fleet *Builder
		want  status
	}{
		"all serve":                {three().Budget("b", "w", most(2)), status{Machines: 3, DisruptionsAllowed: 2}},
		"one is away":              {three(NotReady).Budget("b", "w", most(2)), status{Machines: 3, Unavailable: 1, UnavailableMachines: []string{"w2"}, DisruptionsAllowed: 1}},
		"one is in a slot":         {three(InSlot(v1alpha1.DisruptionDrain)).Budget("b", "w", most(1)), status{Machines: 3, Unavailable: 1, UnavailableMachines: []string{"w2"}}},
		"one restarts its kubelet": {three(InSlot(v1alpha1.DisruptionRestart)).Budget("b", "w", most(1)), status{Machines: 3, DisruptionsAllowed: 1}},
		"more are away than may":   {three(Cordoned).Budget("b", "w", most(0)), status{Machines: 3, Unavailable: 1, UnavailableMachines: []string{"w2"}}},
		"one does not count":       {three(outOfService, NotReady).Budget("b", "w", most(1)), status{Machines: 2, DisruptionsAllowed: 1}},
		"none matches":             {three().Budget("b", "nobody", most(1)), status{DisruptionsAllowed: 1}},
		"its selector is no selector": {three().Budget("b", "w", func(s *v1alpha1.MachineDisruptionBudgetSpec) {
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
		}), status{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := gates.BudgetStatuses(tc.fleet.Build())["b"]
			if len(got.UnavailableMachines) == 0 {
				got.UnavailableMachines = nil
			}
			assert.Equal(t, tc.want, got)
		})
	}
	many := New().Deployment("w")
	for i := range 25 {
		many.Machine(fmt.Sprintf("w%02d", i), "w", v1alpha1.RoleWorker, NotReady)
	}
	got := gates.BudgetStatuses(many.Budget("b", "w", most(3)).Build())["b"]
	assert.EqualValues(t, 25, got.Unavailable)
	assert.Equal(t, []string{"w00", "w09"}, []string{got.UnavailableMachines[0], got.UnavailableMachines[len(got.UnavailableMachines)-1]}, "the first ten")
	assert.Nil(t, gates.BudgetStatuses(New().Build()))
}
