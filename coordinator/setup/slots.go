package setup

import (
	"context"

	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// slots has the machines look whose slots a write of the ledger has changed. They find the
// ledger that brings them about. Where all in flight looked at every write, a rollout would
// cost each machine as many looks as there are slots.
func (p *parts) slots() handler.EventHandler {
	enqueue := func(q queue, now client.Object, changed sets.Set[string]) {
		for _, name := range sets.List(changed) {
			q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: now.GetNamespace(), Name: name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if l, ok := e.Object.(*v1alpha1.Ledger); ok {
				p.ledger.Seen(l)
				enqueue(q, l, holdersOf(l))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			old, isOld := e.ObjectOld.(*v1alpha1.Ledger)
			now, isNow := e.ObjectNew.(*v1alpha1.Ledger)
			if isOld && isNow {
				p.ledger.Seen(now)
				enqueue(q, now, changedHolders(old, now))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if l, ok := e.Object.(*v1alpha1.Ledger); ok {
				enqueue(q, l, holdersOf(l))
			}
		},
	}
}

// holdersOf are the machines in flight.
func holdersOf(l *v1alpha1.Ledger) sets.Set[string] {
	out := sets.New[string]()
	for i := range l.Spec.Slots {
		out.Insert(l.Spec.Slots[i].Machine)
	}
	return out
}

// changedHolders are the machines that hold another slot than before, or none any more. Another
// leader, the stop switch, and a look at what has not changed (a resync) are for all of them.
func changedHolders(old, now *v1alpha1.Ledger) sets.Set[string] {
	all := holdersOf(old).Union(holdersOf(now))
	if old.UID != now.UID || old.ResourceVersion == now.ResourceVersion || old.Spec.Epoch != now.Spec.Epoch || old.Spec.Stopped != now.Spec.Stopped {
		return all
	}
	before := make(map[string]*v1alpha1.Slot, len(old.Spec.Slots))
	for i := range old.Spec.Slots {
		before[old.Spec.Slots[i].GrantID] = &old.Spec.Slots[i]
	}
	for i := range now.Spec.Slots {
		slot := &now.Spec.Slots[i]
		if was := before[slot.GrantID]; was != nil && equality.Semantic.DeepEqual(was, slot) {
			all.Delete(slot.Machine)
		}
	}
	return all
}
