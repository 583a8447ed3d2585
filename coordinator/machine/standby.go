package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
)

// standsBy says that the node is kept empty in our name.
func (s *scope) standsBy() bool { return s.node().StandsBy() }

// role is what the machine does, as it is observed.
func (s *scope) role() string {
	if s.view.StandsBy() || s.standsBy() || (s.node() == nil && s.view.WishedStandby()) {
		return v1alpha1.MachineRoleStandby
	}
	return v1alpha1.MachineRoleServing
}

// roleDelay is how long a pass waits for the rollout controller's word at most.
const roleDelay = time.Second

// standsByAfter says whether the machine is to stand by when its slot ends, and whether
// that was decided on the slot as it is now: two machines that end together are not both
// to go to work for the same one.
func (r *Reconciler) standsByAfter(s *scope) (standby, decided bool) {
	slot := s.slot()
	switch {
	case !s.machine.DeletionTimestamp.IsZero(), s.view.OutOfService():
		return slot.StoodBy, true
	case !slot.StoodBy && !s.view.WishedStandby() && !s.view.Pool.HasRoles():
		return false, true
	}
	role, known := r.Board.Role(s.key)
	outcome := s.view.UpToDate() == s.wishMet && role.UpToDate == s.wishMet
	return role.Standby, known && role.Slot == fleet.SlotMark(slot) && outcome
}

// handOver ends the cordon of an operation, or makes it that of a standby.
func (r *Reconciler) handOver(ctx context.Context, s *scope, standby bool) error {
	node := s.node()
	if !standby || node == nil {
		return r.uncordon(ctx, s, s.slot().GrantID)
	}
	err := drain.StandBy(ctx, r.Workload, node.Name, s.slot().GrantID)
	if err == nil && node.CordonedBy == s.slot().GrantID {
		node.CordonedBy = v1alpha1.CordonStandby
	}
	return wrapMachine(s, "leaving the node on standby", err)
}

// giveBack leaves the node as the slot has found it.
func (r *Reconciler) giveBack(ctx context.Context, s *scope, slot *v1alpha1.Slot) error {
	return r.handOver(ctx, s, slot.StoodBy)
}

// standBy ends a slot that was for emptying the node. A crash after the first write finds
// an empty node, and does the same again.
func (r *Reconciler) standBy(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if err := r.handOver(ctx, s, true); err != nil {
		return stop, err
	}
	if err := r.Ledger.Release(ctx, s.key.Namespace, slot.GrantID); err != nil {
		return stop, wrapMachine(s, "releasing the slot", err)
	}
	r.Drains.Forget(slot.GrantID)
	s.status().RolloutFailure = nil
	status.Clear(&s.status().Conditions, v1alpha1.ConditionDrained)
	r.event(s, corev1.EventTypeNormal, status.ReasonStandingBy, "StandBy", "the node is empty, and stays cordoned until the machine is needed")
	return again, nil
}

// stays says why a machine that is being emptied to stand by serves after all.
func (r *Reconciler) stays(s *scope) *gates.Verdict {
	role, known := r.Board.Role(s.key)
	switch {
	case !s.machine.DeletionTimestamp.IsZero():
		return &gates.Verdict{Reason: "MachineDeleted", Message: "the Machine is being deleted"}
	case s.view.OutOfService():
		return &gates.Verdict{Reason: status.ReasonOutOfService, Message: "the machine is out of service"}
	case known && role.Slot == fleet.SlotMark(s.slot()) && !role.Standby:
		return &gates.Verdict{Reason: "StandbyNotNeeded", Message: "the machine is to serve after all"}
	}
	return gates.WithdrawnStandby(s.fleet, s.view)
}

// work takes the cordon off a standby that is to serve.
func (r *Reconciler) work(ctx context.Context, s *scope) (outcome, error) {
	role, known := r.Board.Role(s.key)
	if s.slot() != nil || !s.standsBy() || !s.node().Ready || !known || role.Standby || role.Slot != "" {
		return goOn, nil
	}
	if err := r.uncordon(ctx, s, v1alpha1.CordonStandby); err != nil {
		return stop, fmt.Errorf("putting a standby to work: %w", err)
	}
	r.event(s, corev1.EventTypeNormal, "PutToWork", "Uncordon", "the standby's node is schedulable: it serves now")
	return goOn, nil
}
