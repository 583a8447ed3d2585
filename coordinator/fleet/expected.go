package fleet

import (
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Phases of history that bear on how long a machine is away.
const (
	PhaseWait  = "Wait"  // plan ready, no place yet
	PhaseDrain = "Drain" // cordon to the last pod gone
)

// Estimate is how long an operation takes, by the measurements that there are.
type Estimate struct {
	Duration time.Duration
	// Samples it was made from; 0 is no estimate.
	Samples int
}

// measured are durations of ended operations, shortest first.
type measured []time.Duration

// at is the measurement that q per cent of them do not exceed.
func (s measured) at(q int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	return s[max((len(s)*q+99)/100, 1)-1]
}

// Expected is how long the machine will be away for its plan, from cordon to uncordon: what
// nine of ten operations of its pool did not exceed, or of its own where that is longer.
// Only operations count that went well and drained the node, or did not, as this one does.
func (m *Machine) Expected() Estimate {
	drains := NeedsDrain(m)
	pool, own := m.Pool.measured(drains), m.measured(drains)
	return Estimate{Duration: max(pool.at(90), own.at(90)), Samples: len(pool)}
}

// Usual is the middle of what was measured on the machine, or else in its pool; 0 when nothing was.
func (m *Machine) Usual() time.Duration {
	drains := NeedsDrain(m)
	if own := m.measured(drains); len(own) > 0 {
		return own.at(50)
	}
	return m.Pool.measured(drains).at(50)
}

// measured of the pool; found once for a reading of the fleet.
func (p *Pool) measured(drains bool) measured {
	if p.samples == nil {
		p.samples = map[bool]measured{}
		for _, m := range p.Machines {
			for _, kind := range []bool{true, false} {
				p.samples[kind] = append(p.samples[kind], m.measured(kind)...)
			}
		}
		slices.Sort(p.samples[true])
		slices.Sort(p.samples[false])
	}
	return p.samples[drains]
}

// measured on the machine.
func (m *Machine) measured(drains bool) measured {
	switch {
	case m.host == nil:
		return measuredOf(m.Machine, drains)
	case drains:
		return m.host.samples[1]
	}
	return m.host.samples[0]
}

func measuredOf(m *v1alpha1.Machine, drains bool) measured {
	var out measured
	for _, h := range m.Status.History {
		away, drained := awayFor(h)
		if h.State == v1alpha1.OperationSuccessful && drained == drains && away > 0 {
			out = append(out, away)
		}
	}
	slices.Sort(out)
	return out
}

// awayFor is how long the operation took, and whether it began with a drain. Its wait for
// a place is no part of it, and neither is the soak after the node was given back.
func awayFor(h v1alpha1.HistoryEntry) (away time.Duration, drained bool) {
	for _, p := range h.Phases {
		if p.Name == PhaseWait {
			continue
		}
		away += p.Duration.Duration
		drained = drained || p.Name == PhaseDrain
	}
	return away, drained
}

// Measured is what so many per cent of the pool's operations that went well did not exceed, of those that drained the
// node or of those that did not.
func (p *Pool) Measured(drains bool, percent int) Estimate {
	all := p.measured(drains)
	return Estimate{Duration: all.at(percent), Samples: len(all)}
}
