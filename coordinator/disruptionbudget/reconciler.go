// Package disruptionbudget writes into each MachineDisruptionBudget what it allows now. It
// decides nothing: the rollout controller judges by its own reading, and leaves on the board
// what that came to.
package disruptionbudget

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusManager owns a MachineDisruptionBudget's status.
const statusManager = "refit-coordinator"

// Reconciler keeps the status of MachineDisruptionBudgets true.
type Reconciler struct {
	// Client of the cluster that has the Machines, with a cache.
	Client client.Client
	// Board has what each budget allows.
	Board *board.Board
}

// Reconcile writes the status where it is another than the one that is there. Before the
// namespace was judged, as after a restart, what was written before stays.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b := &v1alpha1.MachineDisruptionBudget{}
	if err := r.Client.Get(ctx, req.NamespacedName, b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) //nolint:wrapcheck // says which object already
	}
	now, judged := r.Board.Budget(req.NamespacedName)
	if !judged || !b.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(b.Status, now) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.write(ctx, b, now)
}

func (r *Reconciler) write(ctx context.Context, b *v1alpha1.MachineDisruptionBudget, now v1alpha1.MachineDisruptionBudgetStatus) error {
	data, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("encoding the status of MachineDisruptionBudget %s: %w", b.Name, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("encoding the status of MachineDisruptionBudget %s: %w", b.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MachineDisruptionBudget"))
	u.SetNamespace(b.Namespace)
	u.SetName(b.Name)
	u.SetUID(b.UID)
	err = r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(statusManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing the status of MachineDisruptionBudget %s: %w", b.Name, err)
	}
	return nil
}
