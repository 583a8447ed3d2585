package machine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// assign names the next hop. It disturbs nothing, and so needs no permission: the
// agent plans and stages for it. While a slot is held the assignment stands still.
func (r *Reconciler) assign(ctx context.Context, s *scope) (outcome, error) {
	st := s.status()
	if st.Versions == nil || s.slot() != nil || !s.machine.DeletionTimestamp.IsZero() {
		return goOn, nil
	}
	if s.wishMet {
		st.Assignment = nil
		if !upgrade.Failed(s.machine) && !drainFailureRecorded(st.RolloutFailure, r.Now()) {
			st.RolloutFailure = nil
		}
		return goOn, nil
	}
	if s.view.OutOfService() {
		st.Assignment = nil
		return goOn, nil
	}
	if upgrade.Failed(s.machine) {
		return goOn, nil // the failed assignment is the record of what was tried
	}
	return goOn, r.nextHop(ctx, s)
}

func (r *Reconciler) nextHop(ctx context.Context, s *scope) error {
	view, host, err := r.planner(ctx, s)
	if err != nil {
		return err
	}
	next, blocked := view.NextAssignment(host, s.machine)
	if blocked != nil {
		s.blocked = blocked
		s.status().Assignment = nil
		return nil //nolint:nilerr // a refusal is a verdict that the Machine shows, not a fault to retry
	}
	if now := s.status().Assignment; now != nil && sameHop(now, next) {
		return nil
	}
	id, err := newID(s.machine.Generation)
	if err != nil {
		return err
	}
	next.ID, next.Epoch = id, r.Ledger.Epoch(s.key.Namespace)
	s.status().Assignment = next
	s.status().RolloutFailure = nil
	return nil
}

// The skew only widens while control planes move on; that alone is no reason to plan again.
func sameHop(a, b *v1alpha1.Assignment) bool {
	return a.Generation == b.Generation && a.Type == b.Type && a.KubeadmRole == b.KubeadmRole &&
		equality.Semantic.DeepEqual(a.Target, b.Target)
}

// newID is unique: a plan for an earlier assignment never fits a later one.
func newID(generation int64) (string, error) {
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("drawing an id: %w", err)
	}
	return fmt.Sprintf("%d-%s", generation, hex.EncodeToString(random[:])), nil
}

// planner is the planner's view of every host of the cluster (the Machines of this namespace,
// and the Nodes that no Machine manages, which count for skew as well) and the machine in it,
// as this pass has it.
func (r *Reconciler) planner(ctx context.Context, s *scope) (*upgrade.View, upgrade.HostState, error) {
	var before uint64
	if r.Changes != nil {
		before = r.Changes.Count()
		if view, host, same := r.views.Kept(s.key.Namespace, before, s.machine, s.node()); same {
			return view, host, nil
		}
	}
	machines := &v1alpha1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil { // it is only read
		return nil, upgrade.HostState{}, fmt.Errorf("listing Machines for skew: %w", err)
	}
	nodes := &corev1.NodeList{}
	if err := r.Nodes.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, upgrade.HostState{}, fmt.Errorf("listing Nodes for skew: %w", err)
	}
	view, host := r.views.Of(s.key.Namespace, before, machines.Items, nodes.Items, s.machine)
	return view, host, nil
}
