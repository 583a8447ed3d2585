package rollout

import (
	"time"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/refit-dev/refit/coordinator/standby"
)

// nextMoment is how long it is until time alone may change a verdict; 0 when it never does.
func nextMoment(f *fleet.Fleet) time.Duration {
	next := soonest{now: f.Now}
	for _, m := range f.Machines {
		if failure := m.Status.RolloutFailure; failure != nil && failure.NextRetryTime != nil {
			next.at(failure.NextRetryTime.Time)
		}
		if m.Pool.Rolling().TopologyKey != "" || standby.Asked(m.Pool) {
			next.at(m.OutOfSightAt())
		}
	}
	seen := map[*fleet.Pool]bool{}
	for _, m := range f.Machines {
		if !seen[m.Pool] && m.Pool.HasWindows() && order.Ready(m) {
			seen[m.Pool] = true
			next.window(m.Pool)
		}
	}
	return next.in
}

// soonest is the nearest of some moments that lie ahead.
type soonest struct {
	now time.Time
	in  time.Duration
}

func (s *soonest) at(t time.Time) {
	if d := t.Sub(s.now); d > 0 && (s.in == 0 || d < s.in) {
		s.in = d
	}
}

// window is its close, after which those who wait in it wait for the next one, or its opening.
func (s *soonest) window(p *fleet.Pool) {
	hours, err := p.Hours()
	switch {
	case err != nil:
	case hours.Open:
		s.at(hours.Closes)
	case !hours.Next.IsZero():
		s.at(hours.Next)
	}
}
