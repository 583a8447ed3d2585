package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// healthPoll is how often health is looked at where no event tells of it (leases).
	healthPoll = 2 * time.Second
	// heartbeat is how long the wait for the kubelet's next one goes without saying.
	heartbeat = 12 * time.Second
	// unhealthyAfter is how long a machine may take to become healthy before it counts as failed.
	unhealthyAfter = 10 * time.Minute
)

// verify judges an ended operation. The entry in history marks its end and is written
// before the slot is released, so that a crash between the two releases, and never
// judges twice.
func (r *Reconciler) verify(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if slot == nil || slot.State != v1alpha1.SlotVerifying {
		return goOn, nil
	}
	op := s.read.Status.LastOperation
	switch {
	case inHistory(s.read, slot.GrantID):
		return r.release(ctx, s)
	case op == nil || op.ID != slot.GrantID:
		return stop, nil // the agent's record is away for the moment; it comes back with the agent
	case op.State == v1alpha1.OperationFailed:
		r.failed(s, op)
		return again, nil
	}
	return r.succeeded(ctx, s)
}

// ended gives a slot back that is in the ledger again, as it was before its operation ended: a
// backup was restored. The host is through with its grant, and nothing is drained for it again.
func (r *Reconciler) ended(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if slot == nil || slot.State == v1alpha1.SlotVerifying || !inHistory(s.read, slot.GrantID) {
		return goOn, nil
	}
	r.Drains.Forget(slot.GrantID)
	return r.release(ctx, s)
}

func inHistory(m *v1alpha1.Machine, id string) bool {
	return slices.ContainsFunc(m.Status.History, func(h v1alpha1.HistoryEntry) bool { return h.ID == id })
}

func (r *Reconciler) succeeded(ctx context.Context, s *scope) (outcome, error) {
	problems, err := r.unhealthy(ctx, s)
	if err != nil {
		return stop, err
	}
	if len(problems) > 0 {
		return r.notHealthyYet(s, problems), nil
	}
	s.status().RolloutFailure = nil // unreachable or unhealthy for a while, and well now
	slot := s.slot()
	if slot.UncordonedTime == nil {
		standby, decided := r.standsByAfter(s)
		if !decided {
			s.after(roleDelay)
			return stop, nil
		}
		if err := r.handOver(ctx, s, standby); err != nil {
			return stop, err
		}
		now := metav1.NewTime(r.Now())
		if soak := s.view.Pool.Rolling().Soak; soak == nil && !standby {
			slot.UncordonedTime = &now // nothing comes between it and the end
		} else {
			next, err := r.advance(ctx, s, func(slot *v1alpha1.Slot) { slot.UncordonedTime = &now })
			if err != nil || next != goOn {
				return next, err
			}
		}
	}
	if left := s.soakLeft(r.Now()); left > 0 {
		s.health = "soaking"
		s.after(min(left, soakPoll))
		return stop, nil
	}
	r.finish(s, v1alpha1.OperationSuccessful, "")
	r.event(s, corev1.EventTypeNormal, "Upgraded", "Verify", "the machine runs its target and is healthy")
	return again, nil
}

const soakPoll = 10 * time.Second

func (s *scope) soakLeft(now time.Time) time.Duration {
	soak := s.view.Pool.Rolling().Soak
	if soak == nil || s.standsBy() {
		return 0
	}
	return soak.Duration - now.Sub(s.slot().UncordonedTime.Time)
}

// notHealthyYet keeps the slot, so that no other machine goes before this one is well.
// A person's new spec or retry ends the wait.
func (r *Reconciler) notHealthyYet(s *scope, problems []string) outcome {
	s.health = strings.Join(problems, "; ")
	s.after(healthPoll)
	applied := s.slot().AppliedTime
	if applied == nil || r.Now().Sub(applied.Time) < unhealthyAfter {
		s.unsaid = applied != nil && r.Now().Sub(applied.Time) < heartbeat
		return stop
	}
	failure := s.status().RolloutFailure
	if failure == nil {
		s.status().RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassUnhealthyAfter, Failure: v1alpha1.Failure{
			Reason: fleet.ClassUnhealthyAfter, Message: fmt.Sprintf("not healthy %s after the operation: %s", unhealthyAfter, s.health),
		}}
		r.event(s, corev1.EventTypeWarning, fleet.ClassUnhealthyAfter, "Verify", s.health)
		return stop
	}
	if !fleet.CurrentAssignment(s.machine) || retryToken(s) != s.status().ObservedRetry {
		r.finish(s, v1alpha1.OperationSuccessful, fleet.ClassUnhealthyAfter)
		return again
	}
	return stop
}

// failed records the verdict of a failed operation. The assignment stays as the record
// of what was tried, and keeps the machine from being tried again by itself.
func (r *Reconciler) failed(s *scope, op *v1alpha1.Operation) {
	class := fleet.ClassApplyFailed
	if op.RolledBack {
		class = fleet.ClassRolledBack
	}
	reason := op.Reason
	if reason == "" {
		reason = class
	}
	message := op.Description // says what became of the host, too
	if op.Step != "" {
		message = fmt.Sprintf("step %s failed: %s", op.Step, op.Description)
	}
	s.status().RolloutFailure = &v1alpha1.RolloutFailure{Class: class, Failure: v1alpha1.Failure{
		Reason: reason, Message: message, Terminal: true, Attempts: 1,
	}}
	r.finish(s, v1alpha1.OperationFailed, reason)
	r.event(s, corev1.EventTypeWarning, reason, "Verify", message+"; "+status.RetryHint(s.key.Name))
}

// release gives the place away. A machine that failed and is not well keeps our
// cordon; unmark takes it off when the node is well again.
func (r *Reconciler) release(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if s.node() != nil && (s.node().Ready || slot.StoodBy) {
		if err := r.giveBack(ctx, s, slot); err != nil {
			return stop, err
		}
	}
	if err := r.Ledger.Release(ctx, s.key.Namespace, slot.GrantID); err != nil {
		return stop, wrapMachine(s, "releasing the slot", err)
	}
	r.leases.forget(slot.GrantID)
	s.unsaid = inHistory(s.read, slot.GrantID) // the end is written already, as it is without the slot
	return again, nil
}
