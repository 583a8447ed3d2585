package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func reported(edits ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	m.Status.Versions = &v1alpha1.ObservedVersions{}
	for _, e := range edits {
		e(m)
	}
	return m
}

func with(c metav1.Condition) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) { status.Set(&m.Status.Conditions, m.Generation, time.Now(), c) }
}

func staged(m *v1alpha1.Machine) {
	assigned(m)
	m.Status.Plan = &v1alpha1.PlanStatus{AssignmentID: "a"}
	with(metav1.Condition{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue, Reason: "Staged"})(m)
}

func assigned(m *v1alpha1.Machine) {
	m.Status.Assignment = &v1alpha1.Assignment{ID: "a", Generation: 3}
}

func operation(op v1alpha1.Operation) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.Grant = &v1alpha1.Grant{ID: "g"}
		m.Status.Accepted = &v1alpha1.Acceptance{GrantID: "g"}
		op.ID = "g"
		m.Status.LastOperation = &op
	}
}

func TestThePhaseFollowsFromTheConditions(t *testing.T) {
	outdated := with(status.NotUpToDate("Outdated", ""))
	for name, tc := range map[string]struct {
		machine *v1alpha1.Machine
		want    v1alpha1.Phase
	}{
		"never reported":               {&v1alpha1.Machine{}, v1alpha1.PhasePending},
		"nothing to do":                {reported(with(status.UpToDate()), with(status.Ready())), v1alpha1.PhaseReady},
		"nothing to do, standing by":   {reported(with(status.UpToDate()), func(m *v1alpha1.Machine) { m.Status.Role = v1alpha1.MachineRoleStandby }), v1alpha1.PhaseStandby},
		"the cluster lost sight of it": {reported(with(status.UpToDate()), with(status.ReadyUnknown("NodeUnreachable", ""))), v1alpha1.PhaseUnknown},
		"outdated":                     {reported(outdated), v1alpha1.PhaseOutdated},
		"assigned":                     {reported(outdated, assigned), v1alpha1.PhaseStaging},
		"assigned for an older spec":   {reported(outdated, assigned, func(m *v1alpha1.Machine) { m.Generation = 4 }), v1alpha1.PhaseOutdated},
		"staged":                       {reported(outdated, staged), v1alpha1.PhaseWaiting},
		"held by a gate":               {reported(outdated, staged, with(status.Waiting("BudgetExhausted", ""))), v1alpha1.PhaseWaiting},
		"paused by its deployment":     {reported(outdated, staged, with(status.Waiting("Paused", ""))), v1alpha1.PhasePaused},
		"paused itself":                {reported(outdated, func(m *v1alpha1.Machine) { m.Spec.Paused = true }), v1alpha1.PhasePaused},
		"draining":                     {reported(outdated, staged, with(status.Draining(""))), v1alpha1.PhaseDraining},
		"drained":                      {reported(outdated, staged, with(status.Drained(""))), v1alpha1.PhaseApplying},
		"accepted, nothing heard yet":  {reported(outdated, operation(v1alpha1.Operation{}), func(m *v1alpha1.Machine) { m.Status.LastOperation = nil }), v1alpha1.PhaseApplying},
		"working":                      {reported(outdated, operation(v1alpha1.Operation{State: v1alpha1.OperationProcessing})), v1alpha1.PhaseApplying},
		"rebooting":                    {reported(outdated, operation(v1alpha1.Operation{State: v1alpha1.OperationProcessing, Step: "Reboot"})), v1alpha1.PhaseRebooting},
		"rolling back":                 {reported(outdated, operation(v1alpha1.Operation{State: v1alpha1.OperationProcessing, RolledBack: true})), v1alpha1.PhaseRollingBack},
		"ended":                        {reported(with(status.UpToDate()), operation(v1alpha1.Operation{State: v1alpha1.OperationSuccessful})), v1alpha1.PhaseVerifying},
		"soaking":                      {reported(with(status.UpToDate()), with(status.Healthy()), operation(v1alpha1.Operation{State: v1alpha1.OperationSuccessful})), v1alpha1.PhaseSoaking},
		"failed":                       {reported(outdated, staged, with(status.Stalled("VerifyFailed", ""))), v1alpha1.PhaseFailed},
		"working, out of sight":        {reported(outdated, with(status.ReadyUnknown("NodeUnreachable", "")), operation(v1alpha1.Operation{State: v1alpha1.OperationProcessing})), v1alpha1.PhaseApplying},
		"working, out of sight for too long": {reported(with(status.ReadyUnknown("NodeUnreachable", "")), operation(v1alpha1.Operation{}), func(m *v1alpha1.Machine) {
			m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "Unreachable"}
		}), v1alpha1.PhaseUnknown},
		"ended, and not well": {reported(operation(v1alpha1.Operation{State: v1alpha1.OperationSuccessful}), func(m *v1alpha1.Machine) {
			m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "UnhealthyAfter"}
		}), v1alpha1.PhaseFailed},
		"a void grant is no operation": {reported(outdated, staged, operation(v1alpha1.Operation{}), func(m *v1alpha1.Machine) { m.Status.Grant.Void = true }), v1alpha1.PhaseWaiting},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, status.Phase(tc.machine)) })
	}
}

func TestAConditionChangesWhenStatusOrReasonDo(t *testing.T) {
	var conditions []metav1.Condition
	now := time.Date(2030, 1, 1, 22, 0, 0, 0, time.UTC)
	assert.True(t, status.Set(&conditions, 1, now, status.Waiting("BudgetExhausted", "1 of 1")))
	assert.False(t, status.Set(&conditions, 2, now, status.Waiting("BudgetExhausted", "1 of 1 still")), "another message is no event")
	assert.EqualValues(t, 2, conditions[0].ObservedGeneration)
	status.Set(&conditions, 2, now.Add(time.Hour), status.Waiting("BudgetExhausted", "1 of 1"))
	assert.Equal(t, metav1.NewTime(now), conditions[0].LastTransitionTime, "by the caller's clock, and kept while the status is the same")
	assert.True(t, status.Set(&conditions, 2, now, status.Waiting("Paused", "")))
	status.Set(&conditions, 2, now, status.Stalled("X", strings.Repeat("long ", 1000)))
	assert.Len(t, conditions[1].Message, 1024, "a Machine stays small")
	status.Set(&conditions, 2, now, metav1.Condition{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue, Reason: "Staged"})
	assert.Len(t, status.OfCoordinator(conditions), 2, "the agent's conditions are the agent's")
	status.Clear(&conditions, v1alpha1.ConditionStalled)
	assert.Len(t, conditions, 2)
}
