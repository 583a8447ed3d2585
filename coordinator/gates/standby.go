package gates

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// standby says what is missing where no machine of the pool may be unavailable and none
// can take over: without a standby the budget would never have room.
func standby(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	p := m.Pool
	if !fleet.NeedsDrain(m) || p.MaxUnavailable() > 0 || m.StandsBy() || m.Down() != "" {
		return nil
	}
	if o := p.Tally(); o.ServingBut(m) >= p.Size() || len(o.AwayBut(m)) > 0 {
		return nil // room, or a matter of waiting for the machine that is away
	}
	var unusable, coming []string
	for _, other := range p.Machines {
		switch {
		case !other.StandsBy():
		case other.Unusable() != "":
			unusable = append(unusable, other.Name+" "+other.Unusable())
		default:
			coming = append(coming, other.Name)
		}
	}
	switch none := fmt.Sprintf("maxUnavailable of %s is 0, and %s", poolName(p), status.Count(p.Size(), "machine")+" should serve"); {
	case len(coming) > 0:
		return &Verdict{Reason: ReasonBudgetExhausted, Message: none + ": a standby is upgraded and put to work first", Moment: momentary(listed(coming))}
	case len(unusable) > 0:
		return &Verdict{Reason: ReasonNoStandby, Message: fmt.Sprintf("%s, so a standby has to take over first, and none can: %s; bring it back, or allow maxUnavailable 1",
			none, strings.Join(unusable, ", "))}
	default:
		return &Verdict{Reason: ReasonNoStandby, Message: none + ", so a standby has to take over first, and there is none: set spec.availability of a machine to Standby, " +
			"or spec.replicas of the pool below the number of its machines, or allow maxUnavailable 1"}
	}
}

// room are the gates that a machine passes as soon as another one takes over for it.
var room = map[string]bool{"capacity": true, "standby": true, "budget": true, "disruption-budgets": true}

// WaitsForRoom says that nothing but room keeps the machine from being drained.
func WaitsForRoom(f *fleet.Fleet, m *fleet.Machine) bool {
	for _, g := range All {
		if !room[g.Name] && g.Judge(f, m) != nil {
			return false
		}
	}
	return true
}

// CheckStandby returns what keeps a serving machine from being emptied to stand by, nil
// when it may be. Nothing is done to its host, so that only those gates are asked that
// guard pods and a person's word.
func CheckStandby(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, judge := range []func(*fleet.Fleet, *fleet.Machine) *Verdict{
		stopped, paused, conflict, cordoned, retryLater, controlPlaneAtWork, placeElsewhere, enoughServe, budgetsAllow,
	} {
		if v := judge(f, m); v != nil {
			return v
		}
	}
	return nil
}

// WithdrawnStandby returns the veto that also takes such a slot back before it has ended.
func WithdrawnStandby(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, judge := range []func(*fleet.Fleet, *fleet.Machine) *Verdict{stopped, paused, conflict} {
		if v := judge(f, m); v != nil {
			return v
		}
	}
	return nil
}

// controlPlaneAtWork keeps pods in place while evictions may find no API server.
func controlPlaneAtWork(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	for _, other := range f.Machines {
		if other != m && isMember(other) && other.Slot != nil {
			return &Verdict{Reason: ReasonControlPlaneBusy, Message: fmt.Sprintf("control-plane machine %s is being worked on: it comes first, and alone", other.Name)}
		}
	}
	return nil
}

func enoughServe(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if o := m.Pool.Tally(); o.ServingBut(m) < m.Pool.Size()-m.Pool.MaxUnavailable() {
		return exhausted(m)
	}
	return nil
}
