package rollout

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/drain"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reclaim ends the slots of machines that are gone: the finalizer keeps a Machine that
// is in a slot, so someone has forced it out. The node gets back what we took from it.
func (r *Reconciler) reclaim(ctx context.Context, l *v1alpha1.Ledger) error {
	machines := &v1alpha1.MachineList{}
	if err := r.Live.List(ctx, machines, client.InNamespace(l.Namespace)); err != nil {
		return fmt.Errorf("listing Machines to reclaim slots: %w", err)
	}
	for i := range l.Spec.Slots {
		slot := l.Spec.Slots[i]
		if holder(machines, slot) {
			continue
		}
		if err := drain.Uncordon(ctx, r.Workload, slot.Machine, slot.GrantID); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("giving back the node of a Machine that is gone: %w", err)
		}
		if err := r.Ledger.Release(ctx, l.Namespace, slot.GrantID); err != nil {
			return fmt.Errorf("reclaiming the slot of a Machine that is gone: %w", err)
		}
		logr.FromContextOrDiscard(ctx).Info("Reclaimed the slot of a machine that is gone", "machine", slot.Machine, "grant", slot.GrantID)
	}
	return nil
}

// orphans says whether the ledger has slots that no machine of the fleet holds.
func orphans(l *v1alpha1.Ledger, f *fleet.Fleet) bool {
	held := 0
	for _, m := range f.Machines {
		if m.Slot != nil {
			held++
		}
	}
	return held < len(l.Spec.Slots)
}

func holder(machines *v1alpha1.MachineList, slot v1alpha1.Slot) bool {
	l := &v1alpha1.LedgerSpec{Slots: []v1alpha1.Slot{slot}}
	for i := range machines.Items {
		if fleet.SlotOf(l, &machines.Items[i]) != nil {
			return true
		}
	}
	return false
}
