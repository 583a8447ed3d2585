package rollout

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// errHandedOver ends a pass: nothing more is reserved by this leader.
var errHandedOver = errors.New("the lead is handed over")

// handOver gives the lead away instead of reserving a slot that would empty this coordinator's own node, if another one is
// ready to lead. Where none is, or none took the lead when it was given away before, the drain goes on: it evicts our own pod last.
func (r *Reconciler) handOver(ctx context.Context, l *v1alpha1.Ledger, f *fleet.Fleet, m *fleet.Machine, d v1alpha1.Disruption) error {
	if !r.Seat.On(m) || !fleet.Disrupts(d) || r.Seat.Tried(l.Annotations[v1alpha1.AnnotationHandedOver], f.Now) {
		return nil
	}
	next, err := r.Seat.Successor(ctx, f)
	if err != nil || next == "" {
		return err //nolint:wrapcheck // says what was looked for
	}
	if err := r.Ledger.Mark(ctx, l, v1alpha1.AnnotationHandedOver, r.Seat.Mark(f.Now)); err != nil {
		return err //nolint:wrapcheck // says what was marked
	}
	logr.FromContextOrDiscard(ctx).Info("Handing the lead over: the node of this coordinator is next", "machine", m.Name, "ready", next)
	r.Seat.Leave()
	return errHandedOver
}
