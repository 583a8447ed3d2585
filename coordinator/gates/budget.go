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
	words := p.Tally().WordsBut(m, func(away []*fleet.Machine) fleet.Words {
		words := wordsOf(away)
		if len(away) == 0 && p.MaxUnavailable() > 0 {
			words = fleet.Words{Lasting: fmt.Sprintf(": no more than %s serve", status.Count(p.Serving(), "machine"))}
		}
		words.Lasting = fmt.Sprintf("%d of %s may be unavailable in %s, and none is left%s",
			p.MaxUnavailable(), status.Count(p.Size(), "machine"), poolName(p), words.Lasting)
		return words // whole, since very many wait for the same
	})
	return &Verdict{Reason: ReasonBudgetExhausted, Message: words.Lasting, Moment: words.Moment}
}

// wordsOf are what a message about machines that are away goes on with: first those that
// stay away, which a person has to see to, then those that are in flight.
func wordsOf(away []*fleet.Machine) (w fleet.Words) {
	var lasting, moment []*fleet.Machine
	for _, m := range away {
		if m.StaysAway() {
			lasting = append(lasting, m)
		} else {
			moment = append(moment, m)
		}
	}
	between := ": "
	if len(lasting) > 0 || len(away) == 0 {
		w.Lasting, between = between+listed(whyAway(lasting)), ", "
	}
	if len(moment) > 0 {
		w.Moment = between + listed(whyAway(moment))
	}
	return w
}

func inFlight(m *fleet.Machine) *Verdict {
	limit, busy := m.Pool.MaxInFlight(), m.Pool.Tally().BusyBut(m)
	if len(busy) < limit {
		return nil
	}
	return &Verdict{Reason: ReasonInFlightExhausted, Message: fmt.Sprintf("%s at a time in %s", status.Count(limit, "machine"), poolName(m.Pool)), Moment: momentary(listed(namesOf(busy)))}
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
