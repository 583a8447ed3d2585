package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
)

func conflict(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if len(m.Claims) < 2 {
		return nil
	}
	return &Verdict{Reason: ReasonDeploymentConflict, Message: fmt.Sprintf(
		"MachineDeployments %s all select this machine: change their selectors or its labels so that one remains",
		strings.Join(m.Claims, ", "))}
}
