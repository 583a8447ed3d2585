package gates

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/meta"
)

// held: the host takes no grant. Its owner says so, or another process works on its
// packages: then nobody is drained for a plan that would only wait.
func held(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionHeld)
	if c == nil || c.Status != "True" {
		return nil
	}
	if c.Reason == upgrade.ReasonPackageLockHeld {
		return &Verdict{Reason: c.Reason, Message: c.Message}
	}
	if c.Message != "" { // the agent's own, which says which file it is and what it says
		return &Verdict{Reason: ReasonHeld, Message: c.Message}
	}
	return &Verdict{Reason: ReasonHeld, Message: "the host's owner holds it: remove /etc/refit/hold on the host to go on"}
}
