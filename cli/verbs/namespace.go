package verbs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Namespace is one reading of the pools and machines of a namespace.
type Namespace struct {
	Name     string
	Pools    []v1alpha1.MachineDeployment
	Machines []v1alpha1.Machine
	// Ledger is nil before a coordinator has led the namespace.
	Ledger *v1alpha1.Ledger
	// Fleet joins them, as the coordinator does; without nodes unless they were asked for.
	Fleet *fleet.Fleet
}

// Read reads the namespace, without nodes and budgets.
func Read(ctx context.Context, cl client.Reader, namespace string) (*Namespace, error) {
	return read(ctx, cl, nil, namespace)
}

// read reads budgets and nodes where it is said from where.
func read(ctx context.Context, cl, from client.Reader, namespace string) (*Namespace, error) {
	n := &Namespace{Name: namespace}
	var pools v1alpha1.MachineDeploymentList
	var machines v1alpha1.MachineList
	var budgets v1alpha1.MachineDisruptionBudgetList
	var nodes corev1.NodeList
	lists := []client.ObjectList{&pools, &machines}
	if from != nil {
		lists = append(lists, &budgets)
		if err := from.List(ctx, &nodes); err != nil {
			return nil, fmt.Errorf("listing Nodes: %w", err)
		}
	}
	for _, list := range lists {
		if err := cl.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kindOf(list), err)
		}
	}
	ledger := &v1alpha1.Ledger{}
	switch err := cl.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.LedgerName}, ledger); {
	case err == nil:
		n.Ledger = ledger
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading the Ledger of namespace %s: %w", namespace, err)
	}
	n.Pools, n.Machines = pools.Items, machines.Items
	f, err := fleet.Build(fleet.Objects{
		Machines: n.Machines, Deployments: n.Pools, Budgets: budgets.Items, Nodes: nodes.Items, Ledger: ledger.Spec, Now: time.Now(),
	})
	if err != nil {
		return nil, fmt.Errorf("joining what was read of namespace %s: %w", namespace, err)
	}
	n.Fleet = f
	return n, nil
}

// machinesOf are the machines of a pool, in the order of their names.
func (n *Namespace) machinesOf(d *v1alpha1.MachineDeployment) []*fleet.Machine {
	if p := n.Fleet.Pools[d.Name]; p != nil && p.Deployment != nil {
		return p.Machines
	}
	return nil
}

func kindOf(list client.ObjectList) string {
	switch list.(type) {
	case *v1alpha1.MachineDeploymentList:
		return "MachineDeployments"
	case *v1alpha1.MachineList:
		return "Machines"
	}
	return "MachineDisruptionBudgets"
}
