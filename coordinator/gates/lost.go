package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// lostPool holds a machine that its deployment has let go of together with all others:
// most likely by a mistake in the selector, in the middle of a rollout. Without the gate
// the rest of the rollout would go on outside of the deployment's bounds.
func lostPool(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	if len(m.Claims) > 0 || len(f.Lost) == 0 || !m.FromTemplate() {
		return nil
	}
	return &Verdict{Reason: ReasonNoMachines, Message: fmt.Sprintf(
		"its spec came from a MachineDeployment that does not select it any more, and these select no Machine at all: %s; correct the selector or the machine's labels, or delete the MachineDeployment", listed(f.Lost))}
}
