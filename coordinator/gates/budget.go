package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// budget keeps the machines of the pool that do not serve at maxUnavailable or less.
// A machine that is down already may be worked on (it does not get less available),
// but no more of them at a time than the budget has places.
func budget(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	plan := fleet.FrozenPlan(m.Machine)
	if plan == nil || !fleet.Disrupts(plan.Disruption) {
		return inFlight(m)
	}
	limit := m.Pool.MaxUnavailable()
	var away []string
	slots := 0
	for _, other := range m.Pool.Machines {
		if other == m {
			continue
		}
		if why := other.Unavailable(); why != "" {
			away = append(away, other.Name+" "+why)
		}
		if other.Slot != nil && fleet.Disrupts(other.Slot.Disruption) {
			slots++
		}
	}
	if m.Down() != "" && slots < max(limit, 1) {
		return nil
	}
	if len(away) < limit {
		return nil
	}
	return &Verdict{ReasonBudgetExhausted, fmt.Sprintf("%d of %s may be unavailable in %s, and none is left: %s",
		limit, status.Count(m.Pool.Size(), "machine"), poolName(m.Pool), listed(away))}
}

func inFlight(m *fleet.Machine) *Verdict {
	limit := m.Pool.MaxInFlight()
	var busy []string
	for _, other := range m.Pool.Machines {
		if other != m && other.Slot != nil {
			busy = append(busy, other.Name)
		}
	}
	if len(busy) < limit {
		return nil
	}
	return &Verdict{ReasonInFlightExhausted, fmt.Sprintf("%s at a time in %s: %s", status.Count(limit, "machine"), poolName(m.Pool), listed(busy))}
}

func poolName(p *fleet.Pool) string {
	if p.Deployment == nil {
		return "the machines without a MachineDeployment"
	}
	return "MachineDeployment " + p.Name
}

// listed keeps a message short: status has to stay small in a large fleet.
func listed(names []string) string {
	const most = 5
	if len(names) == 0 {
		return "maxUnavailable is 0"
	}
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
