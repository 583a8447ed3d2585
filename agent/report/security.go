package report

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Security is what is known of security updates.
type Security struct {
	// Known says that somebody has looked; Updates is what was found then.
	Known   bool
	Updates []upgrade.Candidate
	// Failure is why the last look came to nothing.
	Failure error
}

// setSecurity says whether security updates are pending; nothing where spec does not ask for them.
func setSecurity(out *[]metav1.Condition, set func(*metav1.Condition), s State) {
	if !upgrade.WantsSecurityUpdates(s.Spec) {
		meta.RemoveStatusCondition(out, v1alpha1.ConditionSecurityUpdatesPending)
		return
	}
	set(securityPending(s))
}

func securityPending(s State) *metav1.Condition {
	k := s.Security
	switch {
	case k == nil:
		return unknownUpdates("NotLookedYet", "Security updates are looked for within the hour")
	case !k.Known:
		return unknownUpdates("LookFailed", "Security updates could not be looked for: "+k.Failure.Error())
	}
	pending, held := upgrade.PendingSecurityUpdates(k.Updates, s.Facts)
	left := ""
	if len(held) > 0 {
		left = "; on hold and left alone: " + upgrade.NameUpdates(held)
	}
	if len(pending) == 0 {
		return condition(v1alpha1.ConditionSecurityUpdatesPending, false, "NonePending", "No security update is pending"+left)
	}
	return condition(v1alpha1.ConditionSecurityUpdatesPending, true, "UpdatesPending",
		fmt.Sprintf("%d security updates are pending: %s%s", len(pending), upgrade.NameUpdates(pending), left))
}

func unknownUpdates(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ConditionSecurityUpdatesPending, Status: metav1.ConditionUnknown, Reason: reason, Message: shorten(message, maxMessage)}
}
