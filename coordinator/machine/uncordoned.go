package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
)

// giveWay yields to whoever makes the node schedulable in the middle of an operation:
// it is never cordoned again under this slot. What the host has not accepted is taken
// back, as after a drain that was blocked: without the cordon pods would come as fast as
// they are evicted. What it has accepted goes on, without our marker on the node, so that
// a later cordon by a person is known to be theirs.
func (r *Reconciler) giveWay(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if !uncordoned(s) {
		return goOn, nil
	}
	if slot.State == v1alpha1.SlotReserved || slot.State == v1alpha1.SlotGranted {
		if !accepted(s, slot) {
			return r.yield(ctx, s)
		}
	}
	disowned, err := drain.Disown(ctx, r.Workload, s.node().Name, slot.GrantID)
	if err != nil {
		return stop, fmt.Errorf("taking the marker off Node %s: %w", s.node().Name, err)
	}
	if disowned {
		r.event(s, corev1.EventTypeWarning, status.ReasonUncordoned, "Uncordon",
			"someone has made the node schedulable in the middle of an operation: Refit leaves it so, the operation goes on, and pods that come now may be disturbed")
	}
	return goOn, nil
}

// uncordoned says that someone has taken back the cordon of the slot in flight, be it ours
// or one that was there before. Marker and cordon are written together, or the marker under
// the cordon, and so the one without the other is a person's doing.
func uncordoned(s *scope) bool {
	slot, node := s.slot(), s.node()
	return slot != nil && node != nil && !node.Unschedulable &&
		(node.CordonedBy == slot.GrantID || node.FoundCordonedBy == slot.GrantID || node.ExcludedBy == slot.GrantID)
}

// yield records when to try again, and then gives the slot back.
func (r *Reconciler) yield(ctx context.Context, s *scope) (outcome, error) {
	const what = "someone has made the node schedulable before the host began"
	if drainFailureRecorded(s.read.Status.RolloutFailure, r.Now()) {
		return r.takeBack(ctx, s, &gates.Verdict{Reason: status.ReasonUncordoned, Message: what})
	}
	failure := nextDrainFailure(s.status().RolloutFailure, &drain.Blocked{Reason: status.ReasonUncordoned, Message: what}, r.Now())
	s.status().RolloutFailure = failure
	r.event(s, corev1.EventTypeWarning, failure.Reason, "Uncordon", fmt.Sprintf(
		"%s: Refit does not cordon it again before %s; to keep it from doing so, set spec.paused of the machine",
		what, failure.NextRetryTime.UTC().Format(time.RFC3339)))
	return again, nil
}
