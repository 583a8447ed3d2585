package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// budget keeps as many machines of the pool serving as replicas less maxUnavailable.
// A standby takes nothing away and is bounded by maxInFlight. A machine that is down already may be worked on (it does not get less available),
// but no more of them at a time than the budget has places.
func budget(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	plan := fleet.FrozenPlan(m.Machine)
	if plan == nil || !fleet.Disrupts(plan.Disruption) || m.StandsBy() {
		return inFlight(m)
	}
	limit := m.Pool.MaxUnavailable()
	others := othersOf(m)
	if m.Down() != "" && others.slots < max(limit, 1) {
		return nil
	}
	if others.serving >= m.Pool.Size()-limit {
		return nil
	}
	return exhausted(m.Pool, others.away)
}

func exhausted(p *fleet.Pool, away []string) *Verdict {
	why := listed(away)
	if len(away) == 0 && p.MaxUnavailable() > 0 {
		why = fmt.Sprintf("no more than %s serve", status.Count(p.Serving(), "machine"))
	}
	return &Verdict{ReasonBudgetExhausted, fmt.Sprintf("%d of %s may be unavailable in %s, and none is left: %s",
		p.MaxUnavailable(), status.Count(p.Size(), "machine"), poolName(p), why)}
}

// others are the other machines of a pool.
type others struct {
	serving int
	away    []string // that should serve
	slots   int      // that take pods away
}

func othersOf(m *fleet.Machine) others {
	var out others
	for _, other := range m.Pool.Machines {
		if other == m {
			continue
		}
		if why := other.Unavailable(); why != "" {
			out.away = append(out.away, other.Name+" "+why)
		}
		if other.Serves() {
			out.serving++
		}
		if other.Slot != nil && !other.StandsBy() && fleet.Disrupts(other.Slot.Disruption) {
			out.slots++
		}
	}
	return out
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
