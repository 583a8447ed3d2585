package status

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the one word for people that sums a Machine up. It is derived from
// conditions and the handshake and is never branched on by our own code.
func Phase(m *v1alpha1.Machine) v1alpha1.Phase {
	s := &m.Status
	switch {
	case s.Versions == nil:
		return v1alpha1.PhasePending
	case Accepted(m) && s.RolloutFailure == nil:
		return operationPhase(s) // a host that restarts what it upgrades may be out of sight for a while
	case isUnknown(s.Conditions, v1alpha1.ConditionReady):
		return v1alpha1.PhaseUnknown
	case Accepted(m):
		return v1alpha1.PhaseFailed
	case IsFalse(s.Conditions, v1alpha1.ConditionDrained):
		return v1alpha1.PhaseDraining
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionDrained):
		return v1alpha1.PhaseApplying
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled):
		return v1alpha1.PhaseFailed
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionUpToDate):
		return settledPhase(m)
	}
	return outdatedPhase(m)
}

// Accepted says that the agent has accepted the grant that stands.
func Accepted(m *v1alpha1.Machine) bool {
	g, a := m.Status.Grant, m.Status.Accepted
	return g != nil && !g.Void && a != nil && a.GrantID == g.ID
}

// Ended says that the host has reported the end of the operation with that id.
func Ended(m *v1alpha1.Machine, id string) bool {
	op := m.Status.LastOperation
	return op != nil && op.ID == id && op.State != v1alpha1.OperationProcessing
}

func operationPhase(s *v1alpha1.MachineStatus) v1alpha1.Phase {
	op := s.LastOperation
	switch {
	case op == nil || op.ID != s.Grant.ID:
		return v1alpha1.PhaseApplying
	case op.State == v1alpha1.OperationProcessing && op.Step == "Reboot":
		return v1alpha1.PhaseRebooting
	case op.State == v1alpha1.OperationProcessing && (op.RolledBack || op.Type == v1alpha1.OperationRollback):
		return v1alpha1.PhaseRollingBack
	case op.State == v1alpha1.OperationProcessing:
		return v1alpha1.PhaseApplying
	case meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionHealthy):
		return v1alpha1.PhaseSoaking
	}
	return v1alpha1.PhaseVerifying
}

func settledPhase(m *v1alpha1.Machine) v1alpha1.Phase {
	if m.Status.Role == v1alpha1.MachineRoleStandby {
		return v1alpha1.PhaseStandby
	}
	return v1alpha1.PhaseReady
}

func outdatedPhase(m *v1alpha1.Machine) v1alpha1.Phase {
	s := &m.Status
	waiting := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionWaiting)
	switch {
	case m.Spec.Paused, waiting != nil && waiting.Reason == ReasonPaused:
		return v1alpha1.PhasePaused
	case waiting != nil:
		return v1alpha1.PhaseWaiting
	case s.Assignment == nil || s.Assignment.Generation != m.Generation:
		return v1alpha1.PhaseOutdated
	case s.Plan != nil && s.Plan.AssignmentID == s.Assignment.ID && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStaged):
		return v1alpha1.PhaseWaiting
	}
	return v1alpha1.PhaseStaging
}

// IsFalse says that the condition is there and false.
func IsFalse(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionPresentAndEqual(conditions, kind, metav1.ConditionFalse)
}

func isUnknown(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionPresentAndEqual(conditions, kind, metav1.ConditionUnknown)
}
