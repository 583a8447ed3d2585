package machine

import (
	"context"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if err := r.clearMarks(ctx, s); err != nil {
		return stop, err
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

// clearMarks takes our marks off the node, well or not.
func (r *Reconciler) clearMarks(ctx context.Context, s *scope) error {
	node := s.node()
	if node == nil || (node.Marks == (drain.Marks{}) && node.CordonedBy != v1alpha1.CordonStandby) {
		return nil
	}
	if _, err := drain.Clear(ctx, r.Workload, node.Name); err != nil && !apierrors.IsNotFound(err) {
		return wrapMachine(s, "taking the marks off the node", err)
	}
	return nil
}
