package setup

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// nodeChanged passes the changes of a Node that count, and not its heartbeats.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			return !equality.Semantic.DeepEqual(fleet.NodeOf(e.ObjectOld), fleet.NodeOf(e.ObjectNew))
		},
	}
}

// plannersNodeChanged passes what of a Node bears on the next hop of other machines.
func plannersNodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			old, now := plannersNode(e.ObjectOld), plannersNode(e.ObjectNew)
			return !equality.Semantic.DeepEqual(upgrade.Unmanaged(e.ObjectOld.Name, old), upgrade.Unmanaged(e.ObjectNew.Name, now))
		},
	}
}

// versionsChanged passes what bears on the next hop of other machines: what fleet.ForPlanner reads.
func versionsChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, isOld := e.ObjectOld.(*v1alpha1.Machine)
			now, isNow := e.ObjectNew.(*v1alpha1.Machine)
			return isOld && isNow && !fleet.SameToPlanner(old, now)
		},
	}
}

// poolChanged passes a new wish, and that it is written into all machines of the pool.
func poolChanged() predicate.Predicate {
	return predicate.Or(wishChanged(), predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, isOld := e.ObjectOld.(*v1alpha1.MachineDeployment)
			now, isNow := e.ObjectNew.(*v1alpha1.MachineDeployment)
			return isOld && isNow && (old.Status.ObservedGeneration != now.Status.ObservedGeneration || written(old) != written(now))
		},
	})
}

func written(d *v1alpha1.MachineDeployment) bool {
	return (&fleet.Pool{Deployment: d}).TemplateWritten()
}

// wishChanged passes a new spec or annotation (a retry), and of a new status only that a
// deployment has lost its machines, or has some again.
func wishChanged() predicate.Predicate {
	lost := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isOld := e.ObjectOld.(*v1alpha1.MachineDeployment)
		now, isNow := e.ObjectNew.(*v1alpha1.MachineDeployment)
		return isOld && isNow && fleet.HasLost(old) != fleet.HasLost(now)
	}}
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, lost)
}
