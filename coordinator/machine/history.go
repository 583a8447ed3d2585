package machine

import (
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const historyLimit = 5

// Phases of history, in the order in which they pass.
const (
	PhaseWait    = fleet.PhaseWait
	PhaseDrain   = fleet.PhaseDrain
	PhaseApply   = "Apply"   // on the host, without the restarts
	PhaseRestart = "Restart" // of kubelet and runtime
	PhaseReady   = "Ready"   // end of the operation to node given back
)

// finish writes the operation into history, newest first, and ends the handshake.
func (r *Reconciler) finish(s *scope, state v1alpha1.OperationState, reason string) {
	slot, st := s.slot(), s.status()
	now := metav1.NewTime(r.Now())
	entry := v1alpha1.HistoryEntry{
		ID: slot.GrantID, Type: v1alpha1.OperationUpgrade, State: state, Reason: reason, From: slot.From,
		StartTime: &slot.ReservedTime, EndTime: &now, Phases: durations(slot, st.LastOperation, now.Time),
	}
	if a := st.Assignment; a != nil && a.ID == slot.AssignmentID {
		entry.Type, entry.Target = a.Type, a.Target.DeepCopy()
	}
	st.History = append([]v1alpha1.HistoryEntry{entry}, st.History...)
	st.History = st.History[:min(len(st.History), historyLimit)]
	st.Grant = nil
	if state == v1alpha1.OperationSuccessful {
		st.Assignment = nil
	}
	status.Clear(&st.Conditions, v1alpha1.ConditionDrained)
	s.finished = true
}

// durations by phase. What the host measured itself wins over our own view of it,
// which has the delay of the reports in it.
func durations(slot *v1alpha1.Slot, op *v1alpha1.Operation, now time.Time) []v1alpha1.PhaseDuration {
	var out []v1alpha1.PhaseDuration
	add := func(name string, d time.Duration) {
		out = append(out, v1alpha1.PhaseDuration{Name: name, Duration: metav1.Duration{Duration: max(d, 0).Round(time.Millisecond)}})
	}
	if slot.WaitingTime != nil {
		add(PhaseWait, slot.ReservedTime.Sub(slot.WaitingTime.Time))
	}
	if slot.DrainedTime != nil {
		add(PhaseDrain, slot.DrainedTime.Sub(slot.ReservedTime.Time))
	}
	if apply, ok := measured(op, PhaseApply); ok {
		add(PhaseApply, apply)
	} else if slot.GrantedTime != nil && slot.AppliedTime != nil {
		add(PhaseApply, slot.AppliedTime.Sub(slot.GrantedTime.Time))
	}
	if restart, ok := measured(op, PhaseRestart); ok {
		add(PhaseRestart, restart)
	}
	if slot.AppliedTime != nil {
		end := now
		if slot.UncordonedTime != nil {
			end = slot.UncordonedTime.Time
		}
		add(PhaseReady, end.Sub(slot.AppliedTime.Time))
	}
	return out
}

func measured(op *v1alpha1.Operation, phase string) (time.Duration, bool) {
	if op == nil {
		return 0, false
	}
	for _, p := range op.Phases {
		if p.Name == phase {
			return p.Duration.Duration, true
		}
	}
	return 0, false
}
