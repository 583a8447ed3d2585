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
	limit, tally := m.Pool.MaxUnavailable(), m.Pool.Tally()
	if m.Down() != "" && tally.DisruptingBut(m) < max(limit, 1) {
		return nil
	}
	if tally.ServingBut(m) >= m.Pool.Size()-limit {
		return nil
	}
	return exhausted(m)
}

func exhausted(m *fleet.Machine) *Verdict {
	p := m.Pool
	return &Verdict{
		Reason: ReasonBudgetExhausted,
		Message: fmt.Sprintf("%d of %s may be unavailable in %s, and none is left",
			p.MaxUnavailable(), status.Count(p.Size(), "machine"), poolName(p)),
		Moment: p.Tally().WordsBut(m, func(away []*fleet.Machine) string {
			if len(away) == 0 && p.MaxUnavailable() > 0 {
				return fmt.Sprintf("no more than %s serve", status.Count(p.Serving(), "machine"))
			}
			return listed(whyAway(away))
		}),
	}
}

func inFlight(m *fleet.Machine) *Verdict {
	limit, busy := m.Pool.MaxInFlight(), m.Pool.Tally().BusyBut(m)
	if len(busy) < limit {
		return nil
	}
	return &Verdict{Reason: ReasonInFlightExhausted, Message: fmt.Sprintf("%s at a time in %s", status.Count(limit, "machine"), poolName(m.Pool)), Moment: listed(namesOf(busy))}
}

// whyAway words the first of the machines that are away; listed counts the rest.
func whyAway(away []*fleet.Machine) []string {
	out := make([]string, len(away))
	for i, m := range away {
		if i < mostListed {
			out[i] = m.Name + " " + m.Unavailable()
		}
	}
	return out
}

func namesOf(machines []*fleet.Machine) []string {
	out := make([]string, len(machines))
	for i, m := range machines {
		out[i] = m.Name
	}
	return out
}

func poolName(p *fleet.Pool) string {
	if p.Deployment == nil {
		return "the machines without a MachineDeployment"
	}
	return "MachineDeployment " + p.Name
}

// listed keeps a message short: status has to stay small in a large fleet.
func listed(names []string) string {
	if len(names) == 0 {
		return "maxUnavailable is 0"
	}
	if len(names) <= mostListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), len(names)-mostListed)
}

const mostListed = 5
