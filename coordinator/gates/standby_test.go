package gates_test

import (
	"testing"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// surging serves with so many machines, none of them unavailable.
func surging(replicas int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Spec.Replicas = &replicas
		rolling(func(r *v1alpha1.RollingUpdate) { r.MaxUnavailable, r.MaxSurge = at(0), at(1) })(d)
	}
}

func standsBy(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
	n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordonedBy] = true, v1alpha1.CordonStandby
}

// stoodBy is the upgrade of a standby.
func stoodBy(m *v1alpha1.Machine, n *corev1.Node, l *v1alpha1.LedgerSpec) {
	InSlot(v1alpha1.DisruptionDrain)(m, n, l)
	l.Slots[len(l.Slots)-1].StoodBy = true
	n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordonedBy] = true, "g-"+m.Name
}

func TestAStandbyIsMissedByNobodyAndTakesOver(t *testing.T) {
	base := func(edits ...func(*v1alpha1.MachineDeployment)) *Builder {
		return New().Machine("cp1", "", plane).Deployment("w", edits...)
	}
	outdated := Of(func(m *v1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, ObservedGeneration: 1})
	})
	for name, tc := range map[string]struct {
		fleet  *Builder
		reason string // of w1; "" passes
		says   []string
	}{
		"without a standby nobody may go": {
			fleet:  base(surging(2)).Machine("w1", "w", worker).Machine("w2", "w", worker),
			reason: gates.ReasonNoStandby, says: []string{"MachineDeployment w is 0", "spec.availability", "spec.replicas", "maxUnavailable 1"}},
		"nor before it is upgraded": {
			fleet:  base(surging(2)).Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, outdated, standsBy),
			reason: gates.ReasonBudgetExhausted, says: []string{"a standby is upgraded and put to work first: w3"}},
		"nor while it is": {
			fleet:  base(surging(2)).Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, outdated, stoodBy, NotReady),
			reason: gates.ReasonBudgetExhausted, says: []string{"put to work first: w3"}},
		"one that failed is none": {
			fleet: base(surging(2), func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.FailureThreshold = at(2) }).
				Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, standsBy, Failed),
			reason: gates.ReasonNoStandby, says: []string{"w3 failed: VerifyFailed", "bring it back"}},
		"one that is away is none": {
			fleet:  base(surging(2)).Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, standsBy, NotReady),
			reason: gates.ReasonNoStandby, says: []string{"w3 NotReady"}},
		"when it serves there is room": {
			fleet: base(surging(2)).Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, done)},
		"for one": {
			fleet:  base(surging(2)).Machine("w1", "w", worker).Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("w3", "w", worker, done),
			reason: gates.ReasonBudgetExhausted, says: []string{"0 of 2 machines", "w2 being upgraded"}},
		"a standby itself may go": {
			fleet: base(surging(2)).Machine("w1", "w", worker, standsBy).Machine("w2", "w", worker).Machine("w3", "w", worker)},
		"bounded by maxInFlight": {
			fleet:  base(surging(1)).Machine("w1", "w", worker, standsBy).Machine("w2", "w", worker, stoodBy).Machine("w3", "w", worker),
			reason: gates.ReasonInFlightExhausted, says: []string{"w2"}},
		"where no node takes pods too": {
			fleet: New().Machine("cp1", "", plane, Tainted("plane")).Deployment("w", surging(0)).Machine("w1", "w", worker, standsBy)},
		"before the turn of its domain": {
			fleet: base(surging(1), func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.TopologyKey = "zone" }).
				Machine("w1", "w", worker, standsBy, Zone("b")).Machine("w2", "w", worker, Zone("a"))},
		"which its own is not by that": {
			fleet: base(surging(1), func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.TopologyKey = "zone" }).
				Machine("w1", "w", worker, Zone("a")).Machine("w2", "w", worker, stoodBy, Zone("b")).Machine("w3", "w", worker, done, Zone("b"))},
		"its upgrade does not use the budget of the others": {
			fleet: base().Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, stoodBy, Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityStandby }))},
		"nor does it stand for one that serves": {
			fleet: base(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = new(int32); *d.Spec.Replicas = 2 }).
				Machine("w1", "w", worker).Machine("w2", "w", worker, NotReady).Machine("w3", "w", worker, standsBy),
			reason: gates.ReasonBudgetExhausted, says: []string{"1 of 2", "w2 NotReady"}},
		"a MachineDisruptionBudget does not count it": {
			fleet: base(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = new(int32); *d.Spec.Replicas = 2 }).
				Budget("two", "w", func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MinAvailable = at(2) }).
				Machine("w1", "w", worker).Machine("w2", "w", worker).Machine("w3", "w", worker, standsBy),
			reason: gates.ReasonBudgetExhausted, says: []string{"MachineDisruptionBudget two: 0 of 2"}},
		"fewer machines than replicas": {
			fleet:  base(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = new(int32); *d.Spec.Replicas = 4 }).Machine("w1", "w", worker).Machine("w2", "w", worker),
			reason: gates.ReasonBudgetExhausted, says: []string{"no more than 2 machines serve"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := gates.Check(f, f.Find("w1"))
			if tc.reason == "" {
				require.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason, v.Text())
			for _, text := range tc.says {
				assert.Contains(t, v.Text(), text)
			}
		})
	}
}

func TestOnlyRoomIsMadeByAStandby(t *testing.T) {
	waits := func(edits ...Edit) bool {
		f := New().Machine("cp1", "", plane, Tainted("plane")).Deployment("w", surging(1)).Machine("w1", "w", worker, edits...).Machine("w2", "w", worker, standsBy).Build()
		return gates.WaitsForRoom(f, f.Find("w1"))
	}
	assert.True(t, waits(), "neither budget nor a place for the pods is there yet")
	assert.False(t, waits(Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true })))
	assert.False(t, waits(Of(held)))
	assert.False(t, waits(Of(func(m *v1alpha1.Machine) { m.Status.RolloutFailure = drainBlocked(60e9) })))
}

func TestAStandbyThatTakesOverForACanaryGoesBeforeIt(t *testing.T) {
	b := func(surge int32, edits ...Edit) *Builder {
		return New().Machine("cp1", "", plane).Deployment("w", surging(2), func(d *v1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.Canary = at(surge), &v1alpha1.Canary{Count: 1}
		}).Machine("w1", "w", worker, edits...).Machine("w2", "w", worker).Machine("w3", "w", worker, standsBy)
	}
	f := b(1).Build()
	assert.Nil(t, gates.Check(f, f.Find("w3")))
	assert.True(t, gates.WaitsForRoom(f, f.Find("w1")), "the canary")
	assert.False(t, gates.WaitsForRoom(f, f.Find("w2")), "not the canary")
	f = b(0).Build()
	require.NotNil(t, gates.Check(f, f.Find("w3")))
	assert.Equal(t, gates.ReasonCanaryPending, gates.Check(f, f.Find("w3")).Reason, "it takes over for nobody")
}
