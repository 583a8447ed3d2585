package machine

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// tellDrift says once, as an event, that a machine has left its spec: when what was up
// to date for this very spec no longer is, and its host says that no work of ours came
// between. What is done about it, a repair under a grant or nothing, follows from the policy.
func (r *Reconciler) tellDrift(s *scope) {
	before := meta.FindStatusCondition(s.read.Status.Conditions, v1alpha1.ConditionUpToDate)
	drifted := meta.FindStatusCondition(s.read.Status.Conditions, v1alpha1.ConditionDrifted)
	if before == nil || drifted == nil || before.Status != "True" || drifted.Status != "True" || s.wishMet {
		return
	}
	if before.ObservedGeneration != s.machine.Generation || drifted.ObservedGeneration != s.machine.Generation {
		return
	}
	r.event(s, corev1.EventTypeWarning, v1alpha1.ConditionDrifted, "Judge", drifted.Message)
}
