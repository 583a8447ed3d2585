package machine

import (
	"context"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// retry clears what failed when a person asks for another try, and makes room for a
// new assignment, with which the agent plans afresh. A new spec does the same by its
// generation. Re-applying the same spec changes nothing.
func (r *Reconciler) retry(_ context.Context, s *scope) (outcome, error) {
	st, token := s.status(), retryToken(s)
	asked := token != st.ObservedRetry
	st.ObservedRetry = token
	newSpec := st.Assignment != nil && st.Assignment.Generation != s.machine.Generation
	if !asked && !newSpec {
		return goOn, nil
	}
	if s.slot() != nil && s.slot().State != v1alpha1.SlotReserved {
		if asked {
			st.ObservedRetry = s.read.Status.ObservedRetry // not lost: acted on when the slot has ended
		}
		return goOn, nil
	}
	st.RolloutFailure = nil
	if asked && s.slot() == nil && (st.HostFailure != nil || st.Assignment != nil) {
		st.Assignment = nil
	}
	return goOn, nil
}

// retryToken joins the annotation of the machine and of its deployment: a new value of either is one retry.
func retryToken(s *scope) string {
	token := s.machine.Annotations[v1alpha1.AnnotationRetry]
	if d := s.view.Pool.Deployment; d != nil && d.Annotations[v1alpha1.AnnotationRetry] != "" {
		token += "/" + d.Annotations[v1alpha1.AnnotationRetry]
	}
	return token
}
