package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drain empties the node of a reserved slot, and then makes the slot a granted one.
func (r *Reconciler) drain(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if slot == nil || slot.State != v1alpha1.SlotReserved {
		return goOn, nil
	}
	switch {
	case s.node() == nil && slot.DrainsOnly:
		return stop, nil // withdrawn, or the Node comes back
	case s.node() == nil || !fleet.Disrupts(slot.Disruption):
		return r.drained(ctx, s, nil)
	}
	opts, err := r.drainOptions(ctx, s)
	if err != nil {
		return stop, err
	}
	switch cordoned, err := r.cordon(ctx, s, slot.GrantID, opts.LoadBalancers); {
	case err != nil:
		return stop, err
	case !cordoned:
		return r.yield(ctx, s)
	}
	state := r.Drains.Ensure(drains.Request{
		GrantID: slot.GrantID, Machine: s.key, Node: s.node().Name, Options: opts,
	})
	switch {
	case !state.Done:
		r.draining(s, state.Message)
		return stop, nil
	case state.Err != nil:
		return r.drainFailed(ctx, s, state.Err)
	}
	if state.Warning != "" {
		r.event(s, corev1.EventTypeWarning, "DrainIncomplete", "Drain", state.Warning)
	}
	if slot.DrainsOnly {
		return r.standBy(ctx, s)
	}
	status.Set(&s.status().Conditions, s.machine.Generation, r.Now(), status.Drained(state.Message))
	return r.drained(ctx, s, ptr(metav1.NewTime(r.Now())))
}

// draining says how far the drain is, once it has lasted long enough to be read.
func (r *Reconciler) draining(s *scope, message string) {
	if r.Now().Sub(s.slot().ReservedTime.Time) < soon {
		s.unsaid = true
		s.after(soon)
		return
	}
	status.Set(&s.status().Conditions, s.machine.Generation, r.Now(), status.Draining(message))
}

// drainOptions are the machine's policies and what the cluster makes of them.
func (r *Reconciler) drainOptions(ctx context.Context, s *scope) (drain.Options, error) {
	elsewhere, err := fleet.PlaceFor(ctx, r.Nodes, s.node())
	if err != nil {
		return drain.Options{}, wrapMachine(s, "choosing how to drain the node", err)
	}
	return drains.OptionsFor(s.machine.Spec, elsewhere, s.slot().Disruption, r.OwnPods), nil
}

func (r *Reconciler) drained(ctx context.Context, s *scope, drainedTime *metav1.Time) (outcome, error) {
	now := metav1.NewTime(r.Now())
	next, err := r.advance(ctx, s, func(slot *v1alpha1.Slot) {
		slot.State, slot.DrainedTime, slot.GrantedTime = v1alpha1.SlotGranted, drainedTime, &now
	})
	if err != nil {
		return stop, err
	}
	r.Drains.Forget(s.slot().GrantID)
	return next, nil
}

// drainFailed gives the node back at once: nothing was changed on the host. Pods that
// stand in the way make a failure that is tried again later; a fault of the API is
// tried again now.
func (r *Reconciler) drainFailed(ctx context.Context, s *scope, err error) (outcome, error) {
	var blocked *drain.Blocked
	if !errors.As(err, &blocked) {
		r.Drains.Forget(s.slot().GrantID)
		return stop, wrapMachine(s, "draining the node", err)
	}
	if drainFailureRecorded(s.read.Status.RolloutFailure, r.Now()) {
		return r.takeBack(ctx, s, &gates.Verdict{Reason: blocked.Reason, Message: "the drain did not end"})
	}
	failure := nextDrainFailure(s.status().RolloutFailure, blocked, r.Now())
	s.status().RolloutFailure = failure
	r.event(s, corev1.EventTypeWarning, blocked.Reason, "Drain", fmt.Sprintf(
		"the drain did not end: %s; the node is given back and tried again at %s; to try again before that: %s",
		blocked.Message, failure.NextRetryTime.UTC().Format(time.RFC3339), status.RetryCommand(s.key.Name)))
	return again, nil
}

// drainFailureRecorded says that the failure of this drain is on the Machine already. A slot
// is reserved only when the retry time of an earlier failure has passed, so a retry time that
// lies ahead is this drain's own. Were the slot given back first, the next one could be
// reserved before anybody knows that this machine has to wait.
func drainFailureRecorded(f *v1alpha1.RolloutFailure, now time.Time) bool {
	return f != nil && f.Class == fleet.ClassDrainBlocked && f.NextRetryTime != nil && f.NextRetryTime.After(now)
}

const (
	drainRetryFirst = time.Minute
	drainRetryMost  = 30 * time.Minute
)

func nextDrainFailure(before *v1alpha1.RolloutFailure, b *drain.Blocked, now time.Time) *v1alpha1.RolloutFailure {
	attempts, first := int32(1), ptr(metav1.NewTime(now))
	if before != nil && before.Class == fleet.ClassDrainBlocked {
		attempts = before.Attempts + 1
		if before.FirstTime != nil {
			first = before.FirstTime
		}
	}
	delay := min(drainRetryFirst<<min(attempts-1, 10), drainRetryMost)
	if b.Permanent && (b.Reason == drain.ReasonEvictionBlocked || b.Reason == drain.ReasonPodsComeBack) { // each try evicts the other pods in vain
		delay = drainRetryMost
	}
	return &v1alpha1.RolloutFailure{Class: fleet.ClassDrainBlocked, FirstTime: first, Failure: v1alpha1.Failure{
		Reason: b.Reason, Message: b.Message, Attempts: attempts, NextRetryTime: ptr(metav1.NewTime(now.Add(delay))),
	}}
}

func ptr[T any](v T) *T { return &v }
