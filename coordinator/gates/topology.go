package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// topology finishes one domain of a pool before it begins the next. Work on a machine
// that is down takes nothing away from its domain, and may go anywhere. Canaries go in all
// domains before any is begun.
func topology(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	key := m.Pool.Rolling().TopologyKey
	if key == "" || m.Down() != "" || m.StandsBy() {
		return nil
	}
	if m.HasCanaries() && m.CanariesBefore().Is(m) {
		return nil
	}
	turn := m.Pool.InTurn()
	if len(turn.Open) == 0 || m.Domain(key) == turn.Domain {
		return nil
	}
	return &Verdict{Reason: ReasonDomainBusy, Message: fmt.Sprintf("%s is finished first, by spec.strategy.rollingUpdate.topologyKey of MachineDeployment %s",
		domainText(key, turn.Domain), m.Pool.Name), Moment: momentary(listed(turn.Open))}
}

func domainText(key, domain string) string {
	if domain == "" {
		return "what has no label " + key
	}
	return key + "=" + domain
}
