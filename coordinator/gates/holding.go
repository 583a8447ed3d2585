package gates

import (
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Holding is who is behind a verdict, and when time alone ends it: for somebody who asks
// about one machine, where the verdict's own words have to be short and the same for all.
type Holding struct {
	// By are objects, as kubectl writes them, and what is no object in the words of people.
	By []string
	// Machines of them, whose end or return lets the machine go on.
	Machines []*fleet.Machine
	// Until is when it ends by itself; zero where nobody knows.
	Until time.Time
}

// Hold says who is behind the verdict of a gate on the machine.
func Hold(f *fleet.Fleet, m *fleet.Machine, v Verdict) Holding {
	if find := holders[v.Reason]; find != nil {
		return find(f, m)
	}
	return Holding{}
}

var holders = map[string]func(*fleet.Fleet, *fleet.Machine) Holding{
	ReasonStopped:                        func(*fleet.Fleet, *fleet.Machine) Holding { return by("ledger/" + v1alpha1.LedgerName) },
	ReasonPaused:                         heldByPause,
	ReasonNoMachines:                     func(f *fleet.Fleet, _ *fleet.Machine) Holding { return by(named("machinedeployment/", f.Lost)...) },
	ReasonDeploymentConflict:             func(_ *fleet.Fleet, m *fleet.Machine) Holding { return by(named("machinedeployment/", m.Claims)...) },
	ReasonStrategyNotSupported:           heldByPool,
	ReasonHeld:                           func(_ *fleet.Fleet, m *fleet.Machine) Holding { return by("the owner of host " + m.Name) },
	upgrade.ReasonPackageLockHeld:        func(_ *fleet.Fleet, m *fleet.Machine) Holding { return by("another process on host " + m.Name) },
	ReasonAwaitingNext:                   heldByPool,
	ReasonWindowInvalid:                  heldByPool,
	ReasonOutsideWindow:                  heldByWindow,
	ReasonWindowTooShort:                 heldByWindow,
	ReasonForeignCordon:                  func(_ *fleet.Fleet, m *fleet.Machine) Holding { return by("node/" + m.Name) },
	ReasonRetryLater:                     heldByRetry,
	ReasonDrainImpossible:                func(_ *fleet.Fleet, m *fleet.Machine) Holding { return by("node/" + m.Name) },
	ReasonFailureThreshold:               heldByFailures,
	ReasonFleetDegraded:                  func(_ *fleet.Fleet, m *fleet.Machine) Holding { return byMachines(m.Pool.WentDown()) },
	ReasonCanaryPending:                  heldByCanaries,
	ReasonCanaryFailed:                   func(_ *fleet.Fleet, m *fleet.Machine) Holding { return byMachines(m.CanariesBefore().Failed) },
	ReasonControlPlaneBusy:               heldByMembers,
	ReasonControlPlaneUnavailable:        heldByMembers,
	upgrade.ReasonWaitingForControlPlane: heldByMembersBehind,
	upgrade.ReasonWaitingForFirst:        heldByMembersBehind,
	ReasonEtcdNotWell:                    heldByEtcd,
	ReasonEtcdUnknown:                    heldByEtcd,
	ReasonDomainBusy:                     heldByDomain,
	ReasonBudgetExhausted:                heldByBudget,
	ReasonInFlightExhausted:              func(_ *fleet.Fleet, m *fleet.Machine) Holding { return byMachines(m.Pool.Tally().BusyBut(m)) },
	ReasonCheckUnknown:                   heldByChecks,
	ReasonCheckFailed:                    heldByChecks,
	ReasonCheckInvalid:                   heldByChecks,
}

func by(who ...string) Holding { return Holding{By: who} }

func named(prefix string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, prefix+name)
	}
	return out
}

func byMachines(machines []*fleet.Machine) Holding {
	return Holding{By: named("machine/", namesOf(machines)), Machines: machines}
}

func heldByPool(_ *fleet.Fleet, m *fleet.Machine) Holding {
	return by("machinedeployment/" + m.Pool.Name)
}

func heldByPause(f *fleet.Fleet, m *fleet.Machine) Holding {
	if m.Spec.Paused {
		return by("machine/" + m.Name)
	}
	return heldByPool(f, m)
}

func heldByWindow(f *fleet.Fleet, m *fleet.Machine) Holding {
	h := heldByPool(f, m)
	if hours, err := m.Pool.Hours(); err == nil {
		h.Until = hours.Next
	}
	return h
}

func heldByRetry(_ *fleet.Fleet, m *fleet.Machine) Holding {
	h := by("node/" + m.Name)
	if failure := m.Status.RolloutFailure; failure != nil && failure.NextRetryTime != nil {
		h.Until = failure.NextRetryTime.Time
	}
	return h
}

func heldByFailures(f *fleet.Fleet, m *fleet.Machine) Holding {
	var names []string
	for _, failure := range m.Pool.Failures() {
		names = append(names, failure.Machine)
	}
	return byNames(f, append(names, m.Pool.UnhealthyInARow()...))
}

func byNames(f *fleet.Fleet, names []string) Holding {
	var machines []*fleet.Machine
	for _, name := range names {
		if m := f.Find(name); m != nil {
			machines = append(machines, m)
		}
	}
	return byMachines(machines)
}

// heldByCanaries end by themselves where all of them only soak.
func heldByCanaries(_ *fleet.Fleet, m *fleet.Machine) Holding {
	h := byMachines(m.CanariesBefore().Open)
	for _, canary := range h.Machines {
		end := soakEnds(canary)
		if end.IsZero() {
			h.Until = time.Time{}
			break
		}
		if end.After(h.Until) {
			h.Until = end
		}
	}
	return h
}

// soakEnds is when a machine that soaks gives its place back; zero for any other.
func soakEnds(m *fleet.Machine) time.Time {
	soak := m.Pool.Rolling().Soak
	if m.Slot == nil || m.Slot.UncordonedTime == nil || soak == nil {
		return time.Time{}
	}
	return m.Slot.UncordonedTime.Add(soak.Duration)
}

func heldByMembers(f *fleet.Fleet, m *fleet.Machine) Holding {
	var held []*fleet.Machine
	for _, other := range f.Members() {
		if other != m && (other.Slot != nil || isMember(m) && memberLost(other, m) != "") {
			held = append(held, other)
		}
	}
	return byMachines(held)
}

// heldByMembersBehind are those of the control plane that have not got to their wish.
func heldByMembersBehind(f *fleet.Fleet, m *fleet.Machine) Holding {
	var behind []*fleet.Machine
	for _, other := range f.Members() {
		if other != m && !other.UpToDate() {
			behind = append(behind, other)
		}
	}
	return byMachines(behind)
}

func heldByEtcd(f *fleet.Fleet, m *fleet.Machine) Holding {
	var says []*fleet.Machine
	for _, other := range f.Members() {
		if etcdAsSeenFrom(other, m) != "" {
			says = append(says, other)
		}
	}
	return byMachines(says)
}

func heldByDomain(f *fleet.Fleet, m *fleet.Machine) Holding { return byNames(f, m.Pool.InTurn().Open) }

// heldByBudget are the first budget that has no room, and the machines that have taken it.
func heldByBudget(f *fleet.Fleet, m *fleet.Machine) Holding {
	if v := standby(f, m); v != nil && v.Reason == ReasonBudgetExhausted {
		return roomOf("machinedeployment/"+m.Pool.Name, comingStandbys(m.Pool))
	}
	if budget(f, m) != nil {
		return roomOf("machinedeployment/"+m.Pool.Name, m.Pool.Tally().AwayBut(m))
	}
	for _, b := range f.Budgets {
		if judgeBudget(f, m, b) == nil {
			continue
		}
		covered, err := f.Covered(b)
		if err != nil {
			return by("machinedisruptionbudget/" + b.Name)
		}
		away := covered.AwayBut(m)
		if elsewhere := outside(away, b.Spec.TopologyKey, m.Domain(b.Spec.TopologyKey)); len(elsewhere) > 0 {
			away = elsewhere
		}
		return roomOf("machinedisruptionbudget/"+b.Name, away)
	}
	return Holding{}
}

func comingStandbys(p *fleet.Pool) []*fleet.Machine {
	var out []*fleet.Machine
	for _, m := range p.Machines {
		if m.StandsBy() && m.Unusable() == "" {
			out = append(out, m)
		}
	}
	return out
}

// roomOf a budget comes back with the first machine that has soaked.
func roomOf(budget string, away []*fleet.Machine) Holding {
	h := byMachines(away)
	h.By = append([]string{budget}, h.By...)
	for _, m := range away {
		if end := soakEnds(m); !end.IsZero() && (h.Until.IsZero() || end.Before(h.Until)) {
			h.Until = end
		}
	}
	return h
}

// heldByChecks are those that have not passed, or all of the pool where the coordinator alone knows.
func heldByChecks(_ *fleet.Fleet, m *fleet.Machine) Holding {
	h := by("machinedeployment/" + m.Pool.Name)
	for _, c := range m.Pool.Rolling().Checks {
		if outcome, known := m.FreshCheck(c.Name); !known || outcome.State != fleet.CheckPassed {
			h.By = append(h.By, "check "+c.Name)
		}
	}
	return h
}
