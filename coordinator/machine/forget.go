package machine

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	corev1 "k8s.io/api/core/v1"
)

// ReasonForgotten is that of an operation that a person has ended because its host is lost.
const ReasonForgotten = "Forgotten"

// forget ends the slot of a host that does not come back, on a person's word for exactly
// this grant. What was not accepted is taken back as ever. Of what was accepted nobody
// knows how it went: it is recorded as failed, which keeps the machine from being tried
// again by itself. As in verify, history is written before the slot is released.
func (r *Reconciler) forget(ctx context.Context, s *scope) (outcome, error) {
	slot := s.slot()
	if slot == nil || s.machine.Annotations[v1alpha1.AnnotationForget] != slot.GrantID {
		return goOn, nil
	}
	switch {
	case inHistory(s.read, slot.GrantID):
		return r.release(ctx, s)
	case (slot.State == v1alpha1.SlotReserved || slot.State == v1alpha1.SlotGranted) && !accepted(s, slot):
		return r.takeBack(ctx, s, &gates.Verdict{Reason: ReasonForgotten, Message: "a person has given the machine up"})
	}
	message := fmt.Sprintf("a person has given the host up in the middle of an operation (grant %s): nobody knows how it went; look at the host before it is used again", slot.GrantID)
	s.status().RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassUnreachable, Failure: v1alpha1.Failure{
		Reason: ReasonForgotten, Message: message, Terminal: true, Attempts: 1,
	}}
	r.finish(s, v1alpha1.OperationFailed, ReasonForgotten)
	r.event(s, corev1.EventTypeWarning, ReasonForgotten, "Forget", message)
	return again, nil
}
