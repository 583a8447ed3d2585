package machine

import (
	"context"

	"github.com/refit-dev/refit/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// finalize lets a deleted Machine go once nothing of ours is left: an accepted
// operation is waited for, since the host works on it whether we look or not.
func (r *Reconciler) finalize(ctx context.Context, s *scope) (outcome, error) {
	if s.machine.DeletionTimestamp.IsZero() || s.slot() != nil {
		return goOn, nil
	}
	if next, err := r.unmark(ctx, s); next != goOn || err != nil {
		return next, err
	}
	m := s.read.DeepCopy()
	if controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerMachine) {
		if err := r.Client.Update(ctx, m); err != nil {
			return stop, wrapMachine(s, "removing the finalizer", err)
		}
		s.machine.Status = *s.read.Status.DeepCopy() // it is gone: nothing more to write
	}
	return stop, nil
}
