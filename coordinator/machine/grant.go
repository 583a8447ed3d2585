package machine

import (
	"context"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// grant projects a granted slot into the Machine, until the agent has accepted it. The
// Machine was read after the ledger was written, and its resourceVersion is carried.
func (r *Reconciler) grant(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if slot == nil || slot.State != v1alpha1.SlotGranted {
		return goOn, nil
	}
	if accepted(s, slot) {
		return r.advance(ctx, s, func(slot *v1alpha1.Slot) { slot.State = v1alpha1.SlotAccepted })
	}
	if wentAwayIn(slot, s.node()) {
		return stop, nil // its return brings the next pass, or the moment at which the slot is taken back
	}
	if g := s.status().Grant; g == nil || g.ID != slot.GrantID || g.Void {
		s.status().Grant = &v1alpha1.Grant{
			ID: slot.GrantID, AssignmentID: slot.AssignmentID, PlanHash: slot.PlanHash, Epoch: r.Ledger.Epoch(s.key.Namespace),
		}
		s.status().RolloutFailure = nil
	}
	return stop, nil
}

// follow waits for the end of an accepted operation, however long it takes.
func (r *Reconciler) follow(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if slot == nil || slot.State != v1alpha1.SlotAccepted {
		return goOn, nil
	}
	if !status.Ended(s.read, slot.GrantID) {
		r.watchOver(s)
		return stop, nil
	}
	now := metav1.NewTime(r.Now())
	return r.advance(ctx, s, func(slot *v1alpha1.Slot) { slot.State, slot.AppliedTime = v1alpha1.SlotVerifying, &now })
}

// advance changes the slot. The pass goes on where the Machine, read after that write, is
// still what this pass has read: then it is the reading that the next step needs. Where the
// stop switch was thrown meanwhile, the next pass decides what that means.
func (r *Reconciler) advance(ctx context.Context, s *scope, change func(*v1alpha1.Slot)) (outcome, error) {
	if err := r.Ledger.Advance(ctx, s.key.Namespace, s.slot().GrantID, change); err != nil {
		return stop, wrapMachine(s, "advancing the slot", err)
	}
	now, l := &v1alpha1.Machine{}, r.Ledger.Last(s.key.Namespace) // as it was written
	if l == nil || l.Spec.Stopped {
		return again, nil
	}
	if err := r.Live.Get(ctx, s.key, now); err != nil || now.ResourceVersion != s.read.ResourceVersion {
		s.unsaid = true
		return again, wrapMachine(s, "reading again after a change of the slot", client.IgnoreNotFound(err))
	}
	change(s.slot())
	return goOn, nil
}

// void takes back a grant that no slot stands behind: the ledger was lost or restored
// after it was written. One that was accepted has had its slot re-inserted before.
func (r *Reconciler) void(ctx context.Context, s *scope) (outcome, error) {
	g := s.status().Grant
	if s.slot() != nil || g == nil || g.Void || status.Accepted(s.read) {
		return goOn, nil
	}
	epoch, err := r.Ledger.RaiseEpoch(ctx, s.key.Namespace)
	if err != nil {
		return stop, wrapMachine(s, "voiding a grant without a slot", err)
	}
	s.status().Grant = &v1alpha1.Grant{ID: g.ID, AssignmentID: g.AssignmentID, PlanHash: g.PlanHash, Epoch: epoch, Void: true}
	return stop, nil
}
