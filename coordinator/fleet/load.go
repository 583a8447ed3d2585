package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Readers are where a fleet is read from: caches, or the API servers themselves.
type Readers struct{ Machines, Nodes client.Reader }

// Load reads the fleet of the ledger's namespace. It is only read: a cache's own objects are
// in it.
func Load(ctx context.Context, from Readers, l *v1alpha1.Ledger, now time.Time) (*Fleet, error) {
	o, err := read(ctx, from, l, now)
	if err != nil {
		return nil, err
	}
	return Build(o)
}

func read(ctx context.Context, from Readers, l *v1alpha1.Ledger, now time.Time) (Objects, error) {
	var (
		machines    v1alpha1.MachineList
		deployments v1alpha1.MachineDeploymentList
		budgets     v1alpha1.MachineDisruptionBudgetList
		nodes       corev1.NodeList
	)
	in := client.InNamespace(l.Namespace)
	// Deployments first: one that says that its template is written is read before the machines that it is written into.
	if err := from.Machines.List(ctx, &deployments, in); err != nil {
		return Objects{}, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	if err := from.Machines.List(ctx, &machines, in, client.UnsafeDisableDeepCopy); err != nil {
		return Objects{}, fmt.Errorf("listing Machines: %w", err)
	}
	if err := from.Machines.List(ctx, &budgets, in); err != nil {
		return Objects{}, fmt.Errorf("listing MachineDisruptionBudgets: %w", err)
	}
	if err := from.Nodes.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return Objects{}, fmt.Errorf("listing Nodes: %w", err)
	}
	return Objects{
		Machines: machines.Items, Deployments: deployments.Items, Budgets: budgets.Items,
		Nodes: nodes.Items, Ledger: l.Spec, Now: now,
	}, nil
}
