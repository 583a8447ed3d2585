package simulation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
)

// States of machines at the end.
const (
	StateDone         = "Done"
	StateOutOfService = "OutOfService"
	StateFailed       = "Failed"
	StateInFlight     = "InFlight"
	StatePaused       = "Paused"
	StateWaiting      = "Waiting"
)

func (e *Engine) sum(outcome Outcome) Summary {
	last := e.counts.lastChange
	if last.IsZero() {
		last = e.start
	}
	if outcome == TimedOut {
		last = e.until
	}
	s := Summary{
		Outcome: outcome, Makespan: last.Sub(e.start), Machines: len(e.world.machines), States: map[string]int{},
		Evictions: e.evictions, MostUnavailable: e.counts.most,
	}
	s.Seconds = int64(s.Makespan.Seconds())
	for _, name := range slices.Sorted(maps.Keys(e.counts.drains)) {
		n := e.counts.drains[name]
		s.Drains += n
		if n > s.MostDrains {
			s.MostDrains, s.MostDrained = n, name
		}
	}
	for _, name := range e.world.sorted {
		m := e.world.machines[name]
		state := e.stateOf(m)
		s.States[state]++
		if state != StateDone && state != StateOutOfService {
			s.Waiting = append(s.Waiting, e.waiting(m, state))
		}
	}
	if len(s.Waiting) == 0 {
		for _, d := range e.unfinished() {
			c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing)
			s.Waiting = append(s.Waiting, Waiting{MachineDeployment: d.Name, State: StateFailed, Reason: c.Reason, Message: c.Message})
		}
	}
	return s
}

func (e *Engine) stateOf(m *v1alpha1.Machine) string {
	switch {
	case m.Spec.Availability == v1alpha1.AvailabilityOutOfService:
		return StateOutOfService
	case e.disruptionOf(m.Name) != "":
		return StateInFlight
	case !e.counts.open[m.Name]:
		return StateDone
	case meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled):
		return StateFailed
	case m.Status.Phase == v1alpha1.PhasePaused:
		return StatePaused
	}
	return StateWaiting
}

// waiting says what a machine waits for: what holds it now, or what it has been shown last.
func (e *Engine) waiting(m *v1alpha1.Machine, state string) Waiting {
	w := Waiting{Machine: m.Name, State: state}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	if c != nil {
		w.Reason, w.Message = c.Reason, c.Message
	}
	if v, held := e.verdictOf(m.Name); held && state != StateFailed && state != StateInFlight {
		w.Reason, w.Message = v.Reason, v.Text()
	}
	if end, soaks := e.soakEnd(m.Name); soaks {
		w.Reason, w.Message = string(v1alpha1.PhaseSoaking), "it has to stay well until "+end.UTC().Format(time.RFC3339)
	}
	w.Reason = cmp.Or(w.Reason, "Unknown")
	return w
}

func labelsOf(m *v1alpha1.Machine) labels.Set { return labels.Set(m.Labels) }
