package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/nodemarks"
	"github.com/refit-dev/refit/pkg/drain"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func (p *parts) addNodeMarks() error {
	r := &nodemarks.Reconciler{
		Machines: p.mgr.GetClient(), Nodes: p.nodes.GetClient(), Workload: p.workload,
		Ledger: p.ledger, Now: time.Now, Deposed: p.deposed,
	}
	toNamespace := handler.EnqueueRequestsFromMapFunc(namespaceOf)
	err := builder.ControllerManagedBy(p.mgr).Named("nodemarks").
		Watches(&v1alpha1.Machine{}, calmly(namespaceOrOrphans)).
		Watches(&v1alpha1.MachineDeployment{}, toNamespace, builder.WithPredicates(wishChanged())).
		Watches(&v1alpha1.Ledger{}, calmly(namespaceOf)).
		WatchesRawSource(source.Kind(p.nodes.GetCache(), &corev1.Node{}, handler.TypedEnqueueRequestsFromMapFunc(p.mapper.markersOfNode), nodeChanged())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of marks on Nodes: %w", err)
	}
	return nil
}

// namespaceOrOrphans looks after the node of a Machine that goes as well.
func namespaceOrOrphans(ctx context.Context, o client.Object) []ctrl.Request {
	requests := namespaceOf(ctx, o)
	if !o.GetDeletionTimestamp().IsZero() {
		requests = append(requests, requestFor(nodemarks.Orphans))
	}
	return requests
}

// markersOfNode look again when a node has changed: those of its Machines, or those of
// marked nodes that have none.
func (m mapper) markersOfNode(ctx context.Context, n *corev1.Node) []ctrl.Request {
	machines := m.machineOfNode(ctx, n)
	if len(machines) == 0 && drain.Lasts(n) {
		return []ctrl.Request{requestFor(nodemarks.Orphans)}
	}
	out := make([]ctrl.Request, 0, len(machines))
	for _, r := range machines {
		out = append(out, requestFor(r.Namespace))
	}
	return out
}
