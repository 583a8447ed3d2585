package machine

import (
	"context"
	"fmt"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
)

// cordon takes the node out of scheduling, and out of load balancers, under the grant's name. A marker that an
// earlier operation of ours has left is taken over; a cordon of someone else is never
// marked as ours, and so is still there at the end. It is false where someone has taken the
// cordon back.
func (r *Reconciler) cordon(ctx context.Context, s *scope, grantID string, lb drain.LoadBalancers) (bool, error) {
	node := s.node()
	result, err := drain.Cordon(ctx, r.Workload, node.Name, grantID, lb)
	if err != nil {
		return false, fmt.Errorf("cordoning Node %s: %w", node.Name, err)
	}
	if !result.Foreign && !result.Uncordoned {
		node.Unschedulable, node.CordonedBy = true, grantID
	}
	return !result.Uncordoned, nil
}

// uncordon gives the node back if its marker names the grant; any other cordon stays.
func (r *Reconciler) uncordon(ctx context.Context, s *scope, grantID string) error {
	node := s.node()
	if node == nil {
		return nil
	}
	if err := drain.Uncordon(ctx, r.Workload, node.Name, grantID); err != nil {
		return fmt.Errorf("uncordoning Node %s: %w", node.Name, err)
	}
	if node.CordonedBy == grantID {
		node.Unschedulable, node.CordonedBy = false, ""
	}
	return nil
}

// unmark gives back a node that carries a mark of ours while no slot of ours is on it: a
// crash came between, or an operation failed and left the node unwell. It waits until
// the node is well, unless its Machine goes: then nobody is there later. A standby that stays keeps its cordon.
func (r *Reconciler) unmark(ctx context.Context, s *scope) (outcome, error) {
	node := s.node()
	leaving := !s.machine.DeletionTimestamp.IsZero()
	if s.slot() != nil || node == nil || (!node.Ready && !leaving) {
		return goOn, nil
	}
	owners := []string{node.CordonedBy, node.FoundCordonedBy, node.ExcludedBy}
	for i, owner := range owners {
		if owner == "" || slices.Contains(owners[:i], owner) || (owner == v1alpha1.CordonStandby && !leaving) {
			continue
		}
		if err := r.uncordon(ctx, s, owner); err != nil {
			return goOn, err
		}
	}
	return goOn, nil
}
