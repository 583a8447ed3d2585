package machine

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
)

// withdraw takes back a slot that the agent has not accepted, when what it was given
// for no longer stands. An accepted operation is never revoked.
func (r *Reconciler) withdraw(ctx context.Context, s *scope) (outcome, error) {
	if !unbegun(s) {
		return goOn, nil
	}
	why := r.withdrawal(s)
	if why == nil && !s.slot().DrainsOnly {
		silent, recorded := r.wentSilent(s)
		if !s.silent.IsZero() { // on the Machine already, since listen
			silent, recorded = lostBefore(), true
		}
		if silent != nil && !recorded {
			return again, nil
		}
		why = silent
	}
	if why == nil {
		s.lookAtTheClose()
		return goOn, nil
	}
	return r.takeBack(ctx, s, why)
}

// lookAtTheClose asks for a pass when the window closes that the slot was given in.
func (s *scope) lookAtTheClose() {
	if !s.view.Pool.HasWindows() {
		return
	}
	if hours, err := s.view.Pool.Hours(); err == nil && hours.Open {
		s.after(hours.Closes.Sub(s.fleet.Now))
	}
}

func accepted(s *scope, slot *v1alpha1.Slot) bool {
	a := s.read.Status.Accepted
	return a != nil && a.GrantID == slot.GrantID
}

// withdrawal says why the slot is no longer wanted; nil when it is.
func (r *Reconciler) withdrawal(s *scope) *gates.Verdict {
	slot, m := s.slot(), s.machine
	if slot.DrainsOnly {
		return r.stays(s)
	}
	switch plan := fleet.FrozenPlan(m); {
	case !m.DeletionTimestamp.IsZero():
		return &gates.Verdict{Reason: "MachineDeleted", Message: "the Machine is being deleted"}
	case !fleet.CurrentAssignment(m) || m.Status.Assignment.ID != slot.AssignmentID:
		return &gates.Verdict{Reason: "SpecChanged", Message: "the spec has changed since the slot was reserved"}
	case plan == nil || plan.Hash != slot.PlanHash:
		return &gates.Verdict{Reason: "PlanChanged", Message: "the agent has another plan than the one the slot was reserved for"}
	}
	if why := gates.Withdrawn(s.fleet, s.view); why != nil || slot.State != v1alpha1.SlotReserved {
		return why
	}
	return r.Board.Halt(s.key)
}

// takeBack ends a slot that was not accepted. A grant that may have been seen is first
// overwritten by a void one of a higher epoch, on the reading that carries it: either
// the agent's acceptance or this write gets a conflict, never both go through.
func (r *Reconciler) takeBack(ctx context.Context, s *scope, why *gates.Verdict) (outcome, error) {
	slot := s.slot()
	r.Drains.Forget(slot.GrantID)
	if slot.State == v1alpha1.SlotGranted && !voided(s.read, slot.GrantID) {
		epoch, err := r.Ledger.RaiseEpoch(ctx, s.key.Namespace)
		if err != nil {
			return stop, wrapMachine(s, "taking back the grant", err)
		}
		s.status().Grant = &v1alpha1.Grant{ID: slot.GrantID, AssignmentID: slot.AssignmentID, PlanHash: slot.PlanHash, Epoch: epoch, Void: true}
		return again, nil
	}
	if err := r.giveBack(ctx, s, slot); err != nil {
		return stop, err
	}
	if err := r.Ledger.Release(ctx, s.key.Namespace, slot.GrantID); err != nil {
		return stop, wrapMachine(s, "releasing the slot", err)
	}
	status.Clear(&s.status().Conditions, v1alpha1.ConditionDrained)
	r.event(s, corev1.EventTypeNormal, "SlotTakenBack", "TakeBack", fmt.Sprintf(
		"%s (%s): nothing was changed on the host, and the node is given back", why.Message, why.Reason))
	return again, nil
}

func voided(m *v1alpha1.Machine, grantID string) bool {
	g := m.Status.Grant
	return g != nil && g.Void && g.ID == grantID
}
