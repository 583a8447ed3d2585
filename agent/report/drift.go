package report

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// drifted says that the host left its spec by itself: it ran what spec wants, the spec
// is the same, no operation of ours came between, and now it runs something else.
// Once said it stays until the host is back, or the spec changes. nil: nothing new.
func drifted(s State, now v1alpha1.MachineStatus) *metav1.Condition {
	asWished, reason, message := upgrade.UpToDate(s.Spec, now)
	before := meta.FindStatusCondition(s.Base.Conditions, v1alpha1.ConditionDrifted)
	sameSpec := before != nil && before.ObservedGeneration == s.Generation
	switch {
	case asWished:
		return condition(v1alpha1.ConditionDrifted, false, "AsWished", "The host runs what spec wants")
	case reason == upgrade.ReasonVersionUnknown:
		return nil // not seen is not drifted
	case !sameSpec, worked(s.Base.LastOperation, now.LastOperation):
		return condition(v1alpha1.ConditionDrifted, false, "NotYetAsWished", "The host has not run what this spec wants")
	case before.Status == metav1.ConditionTrue, before.Reason == "AsWished":
		return condition(v1alpha1.ConditionDrifted, true, reason, message)
	}
	return nil
}

// worked says that an operation of ours came between two reports.
func worked(before, now *v1alpha1.Operation) bool {
	return now != nil && !sameState(before, now)
}
