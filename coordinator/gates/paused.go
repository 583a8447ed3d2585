package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

func paused(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if m.Spec.Paused {
		return &Verdict{ReasonPaused, "the machine is paused: set spec.paused to false to go on"}
	}
	if d := m.Pool.Deployment; d != nil && d.Spec.Paused {
		return &Verdict{ReasonPaused, fmt.Sprintf("MachineDeployment %s is paused: set its spec.paused to false to go on", d.Name)}
	}
	return nil
}
