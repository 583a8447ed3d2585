package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/disruptionbudget"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// settled is how long a budget's news are gathered before they are written for people: where one
// machine gives its place back and the next takes it, nothing has changed but the name.
const settled = 2 * time.Second

func (p *parts) addBudgets() error {
	r := &disruptionbudget.Reconciler{Client: p.mgr.GetClient(), Board: p.board}
	itself := func(_ context.Context, o client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	err := builder.ControllerManagedBy(p.mgr).Named("machinedisruptionbudget").
		For(&v1alpha1.MachineDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(p.budgets, after(settled, itself))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the MachineDisruptionBudget controller: %w", err)
	}
	return nil
}

// tellBudget has a budget's status written.
func (p *parts) tellBudget(ctx context.Context) func(types.NamespacedName) {
	return func(key types.NamespacedName) {
		b := &v1alpha1.MachineDisruptionBudget{}
		b.Namespace, b.Name = key.Namespace, key.Name
		select {
		case p.budgets <- event.GenericEvent{Object: b}:
		case <-ctx.Done():
		}
	}
}
