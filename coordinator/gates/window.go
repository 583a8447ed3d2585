package gates

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/window"
)

// withinWindow gives grants within the windows of the pool, and none that by measurement
// would not end before they close. Nothing is held back without a measurement.
func withinWindow(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	if v := outsideWindow(f, m); v != nil || !m.Pool.HasWindows() {
		return v
	}
	hours, need := mustHours(m.Pool), m.Expected()
	if need.Samples == 0 || fits(hours, need.Duration, f.Now) {
		return nil
	}
	return &Verdict{Reason: ReasonWindowTooShort, Message: fmt.Sprintf("%s, and the window of %s closes at %s: it waits for %s",
		expectedText(need), poolName(m.Pool), clock(hours.Closes), nextLongEnough(hours, need))}
}

// fits says whether an operation that begins now would end before the close. One that no
// window could hold begins in the first half of a longest one, where it runs over the
// least: otherwise it would never begin.
func fits(hours window.State, need time.Duration, now time.Time) bool {
	left := hours.Closes.Sub(now)
	if need <= hours.Longest {
		return need <= left
	}
	return hours.Closes.Sub(hours.Opened) == hours.Longest && left >= hours.Longest/2
}

// outsideWindow vetoes what windows that are closed forbid. Unlike the rest it also takes
// back what was given and not begun.
func outsideWindow(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if !m.Pool.HasWindows() {
		return nil
	}
	hours, err := m.Pool.Hours()
	switch {
	case err != nil:
		return &Verdict{Reason: ReasonWindowInvalid, Message: err.Error()}
	case hours.Open:
		return nil
	}
	message := fmt.Sprintf("outside of the windows of %s: the next opens at %s", poolName(m.Pool), clock(hours.Next))
	if need := m.Expected(); need.Samples > 0 && need.Duration > hours.Longest {
		message += fmt.Sprintf("; %s, so it will run over", expectedText(need)+" and no window is longer than "+hours.Longest.String())
	}
	return &Verdict{Reason: ReasonOutsideWindow, Message: message}
}

func mustHours(p *fleet.Pool) window.State {
	hours, _ := p.Hours() // outsideWindow has looked at the error
	return hours
}

func nextLongEnough(hours window.State, need fleet.Estimate) string {
	which := "one that is long enough"
	if need.Duration > hours.Longest {
		which = fmt.Sprintf("the first half of a longest one, of %s, since none could hold it", hours.Longest)
	}
	if hours.Next.IsZero() {
		return which
	}
	return fmt.Sprintf("%s; the next opens at %s", which, clock(hours.Next))
}

func expectedText(need fleet.Estimate) string {
	return fmt.Sprintf("by %s of the past it takes %s", status.Count(need.Samples, "operation"), need.Duration.Round(time.Second))
}

func clock(t time.Time) string {
	return fmt.Sprintf("%s (%s)", t.Format(time.RFC3339), t.Location())
}
