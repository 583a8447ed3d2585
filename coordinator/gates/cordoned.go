package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// cordoned leaves machines alone whose node someone else has taken out of scheduling,
// unless the deployment asks for them: a quarantine has its reasons. A cordon that
// comes after the reservation changes nothing, since the drain goes on anyway.
func cordoned(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if !m.Node.ForeignCordon() || m.Pool.Rolling().CordonedMachines == "Include" {
		return nil
	}
	return &Verdict{Reason: ReasonForeignCordon, Message: fmt.Sprintf(
		"the node was cordoned by someone else, and is left alone: uncordon it, or set rollingUpdate.cordonedMachines of %s to Include", poolName(m.Pool))}
}
