package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
)

// watchOver counts a host that has been away for too long as failed, and forgets that
// when it is back. The slot stays: only what is observed ends it.
func (r *Reconciler) watchOver(s *scope) {
	node, failure := s.node(), s.status().RolloutFailure
	if node == nil {
		return
	}
	if node.Ready {
		if failure != nil && failure.Class == fleet.ClassUnreachable {
			s.status().RolloutFailure = nil
		}
		return
	}
	away := r.Now().Sub(node.NotReadySince.Time)
	if away < fleet.Silence {
		s.after(fleet.Silence - away)
		return
	}
	if failure == nil {
		s.status().RolloutFailure = unreachable(node, "in the middle of an operation: see to the host; the operation goes on by itself when it is back")
	}
}

func unreachable(node *fleet.Node, what string) *v1alpha1.RolloutFailure {
	return &v1alpha1.RolloutFailure{Class: fleet.ClassUnreachable, Failure: v1alpha1.Failure{
		Reason:  fleet.ClassUnreachable,
		Message: fmt.Sprintf("the node has not been ready since %s, %s", node.NotReadySince.UTC().Format(time.RFC3339), what),
	}}
}

// welcome forgets that a host was lost before it had begun, when it is back.
func (r *Reconciler) welcome(_ context.Context, s *scope) (outcome, error) {
	f, slot, node := s.status().RolloutFailure, s.slot(), s.node()
	if f != nil && f.Class == fleet.ClassUnreachable && node != nil && node.Ready && (slot == nil || unbegun(s)) {
		s.status().RolloutFailure = nil
	}
	return goOn, nil
}

// unbegun says that the slot may be taken back: the host has not accepted.
func unbegun(s *scope) bool {
	slot := s.slot()
	return slot != nil && (slot.State == v1alpha1.SlotReserved || slot.State == v1alpha1.SlotGranted) && !accepted(s, slot)
}

// silentSince is from when on a host that has not begun is waited for in vain; zero for one
// that is not. A node that was down before its slot was reserved may have an agent that is
// well, and an upgrade may be what brings it back: it is waited for from its grant on.
func silentSince(slot *v1alpha1.Slot, node *fleet.Node) time.Time {
	switch {
	case node == nil || node.Ready:
		return time.Time{}
	case wentAwayIn(slot, node):
		return node.NotReadySince.Time
	case slot.State == v1alpha1.SlotGranted && slot.GrantedTime != nil:
		return slot.GrantedTime.Time
	}
	return time.Time{}
}

// wentAwayIn says that the node went away after the slot was reserved. Both times are in whole
// seconds: a node that was down already when its slot was reserved may have gone down in that
// same second, and is not one that has to come back first.
func wentAwayIn(slot *v1alpha1.Slot, node *fleet.Node) bool {
	return node != nil && !node.Ready && node.NotReadySince.After(slot.ReservedTime.Time)
}

// wentSilent says that the host was lost before it had begun. That is on the Machine before
// its slot is given back: the next one must not be reserved for a host that is not there.
func (r *Reconciler) wentSilent(s *scope) (why *gates.Verdict, recorded bool) {
	since := silentSince(s.slot(), s.node())
	if since.IsZero() {
		return nil, false
	}
	if left := fleet.Silence - r.Now().Sub(since); left > 0 {
		s.after(left)
		return nil, false
	}
	f := s.read.Status.RolloutFailure
	recorded = f != nil && f.Class == fleet.ClassUnreachable
	if !recorded {
		s.status().RolloutFailure = unreachable(s.node(), "and the host had not begun: see to the host; it is tried again by itself when it is back")
	}
	return lostBefore(), recorded
}

func lostBefore() *gates.Verdict {
	return &gates.Verdict{Reason: fleet.ClassUnreachable, Message: "the node was lost before the host began"}
}
