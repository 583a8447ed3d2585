package drain

import (
	"context"
	"fmt"
	"time"
)

// expire applies the policy for the deadline. Done means that the drain ends here without an error.
func (r *run) expire() (done bool, err error) {
	switch {
	case len(r.entries) == 0 && r.unjudged != nil:
		return false, r.timedOut(r.unjudged)
	case len(r.entries) == 0:
		return true, nil
	case r.opts.OnTimeout == ActionProceed:
		r.result.Remaining = append(r.result.Remaining, r.remaining()...)
		return true, nil
	case r.opts.OnTimeout == ActionDelete && !r.deleted:
		r.doom()
		return false, nil
	}
	b := r.stillThere("", r.remaining())
	b.Permanent = b.Reason == ReasonMissingPermission
	return false, b
}

// timedOut is an error that has lasted until the deadline. The drain did not end, as one that
// a pod holds: its next try is not at once.
func (r *run) timedOut(err error) error {
	if time.Now().Before(r.deadline) {
		return err
	}
	return &Blocked{Reason: ReasonEvictionFailed, Message: fmt.Sprintf(
		"whether all pods have left node %s could not be found out in %s: %v", r.node, time.Since(r.start).Round(time.Second), err)}
}

// doom marks what is left for deletion past its budget. A pod that comes later is evicted as
// any other. The deadline moves for those that are leaving, and again with each deletion.
func (r *run) doom() {
	r.deleted = true
	r.deadline = time.Now()
	for _, e := range r.entries {
		if e.state == stateLeaving {
			r.allowFor(e)
			continue
		}
		e.next, e.failures, e.doomed = time.Time{}, 0, !e.stays() // of one that stays another would come, or another policy keeps it
	}
	r.extend(time.Now().Add(r.pace.afterDelete))
}

// allowFor gives a pod that leaves the time that it may take.
func (r *run) allowFor(e *entry) { r.extend(time.Now().Add(graceOf(e.pod) + r.pace.afterDelete)) }

func (r *run) extend(until time.Time) {
	if until.After(r.deadline) {
		r.deadline = until
	}
}

// deleteDue deletes what is doomed. A deletion that is refused or fails is tried again until
// the deadline, and meanwhile those that went are waited for.
func (r *run) deleteDue(ctx context.Context) {
	for _, e := range r.ordered() {
		if !e.doomed || e.state == stateLeaving || time.Now().Before(e.next) {
			continue
		}
		if err := deletePod(ctx, r.client, e.pod); err != nil {
			r.deletionRefused(ctx, e, err)
			continue
		}
		e.leave()
		r.allowFor(e)
		r.result.Deleted++
		r.emit(EventDeleted, e.pod, "", "deleted past its budget: the drain's timeout is over and its policy is Delete")
	}
}

// deletionRefused says who has refused a deletion: a role, admission, or an API server that may let it pass later.
func (r *run) deletionRefused(ctx context.Context, e *entry, err error) {
	answer, after := classify(err, e.pod)
	if answer == answerForbidden {
		allowed, reviewErr := may(ctx, r.client, "delete", "", e.pod.Namespace)
		if reviewErr == nil && !allowed {
			r.block(e, ReasonMissingPermission, fmt.Sprintf("it may not be deleted past its budget: delete pods in namespace %s: %v: "+
				"allow it in the ClusterRole of whoever drains, or take another policy than Delete", e.pod.Namespace, err))
			r.backOff(e, r.pace.last)
			return
		}
	}
	switch answer {
	case answerForbidden, answerRefused:
		r.block(e, ReasonDeletionForbidden, "an admission webhook or policy refuses to let it be deleted past its budget: "+err.Error())
	case answerTerminating:
		r.block(e, ReasonNamespaceTerminating, "its namespace is being deleted, which will delete the pod too")
	default:
		r.block(e, ReasonEvictionFailed, "deleting it past its budget failed and is tried again: "+err.Error())
	}
	r.backOff(e, after)
}
