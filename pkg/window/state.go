package window

import (
	"cmp"
	"slices"
	"time"
)

// State is how the windows stand at one moment.
type State struct {
	// Open says that one of them is open.
	Open bool
	// Opened and Closes are the ends of the time without a gap that is open now.
	Opened, Closes time.Time
	// Next is when they open again after that, in the zone of the window that does; zero when never.
	Next time.Time
	// Longest is the longest time without a gap for which they are open, as far as is looked ahead.
	Longest time.Duration
}

const (
	// ahead is how far is looked; a window that comes less often is looked for until it comes.
	ahead = 400 * 24 * time.Hour
	// most openings of one window, for those that come by the minute.
	most = 4096
)

type span struct{ opens, closes time.Time }

// At is how the windows stand at that moment.
func (s *Set) At(now time.Time) State {
	var all []span
	for _, w := range s.windows {
		all = w.spans(all, now)
	}
	var st State
	for _, sp := range united(all) {
		st.Longest = max(st.Longest, sp.closes.Sub(sp.opens))
		switch {
		case !sp.opens.After(now):
			st.Open, st.Opened, st.Closes = true, sp.opens, sp.closes
		case st.Next.IsZero():
			st.Next = sp.opens
		}
	}
	return st
}

// spans adds those of the window that have not closed yet.
func (w recurring) spans(to []span, now time.Time) []span {
	// The wall clock is at most a day away from UTC, and a change moves it by less.
	wall := asRead(now.In(w.zone)).Add(-w.duration - 26*time.Hour)
	for n := 0; n < most; {
		if wall = w.schedule.Next(wall); wall.IsZero() {
			return to
		}
		sp := span{resolve(wall, w.zone), resolve(wall.Add(w.duration), w.zone)}
		if n > 0 && sp.opens.Sub(now) > ahead {
			return to
		}
		if sp.closes.After(now) && sp.closes.After(sp.opens) {
			to = append(to, sp)
		}
		if sp.opens.After(now) {
			n++
		}
	}
	return to
}

// united merges what overlaps or touches.
func united(all []span) []span {
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(a.opens.Compare(b.opens), a.closes.Compare(b.closes)) })
	var out []span
	for _, sp := range all {
		last := len(out) - 1
		if last < 0 || sp.opens.After(out[last].closes) {
			out = append(out, sp)
		} else if sp.closes.After(out[last].closes) {
			out[last].closes = sp.closes
		}
	}
	return out
}

// asRead is what the clock on the wall shows, as if it were UTC.
func asRead(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// resolve is when the clock on the wall of the zone shows that: the first time where it
// does twice, and the moment of the change where it never does.
func resolve(wall time.Time, zone *time.Location) time.Time {
	before, after := offsetAt(wall.Add(-24*time.Hour), zone), offsetAt(wall.Add(24*time.Hour), zone)
	earlier, later := wall.Add(-before).In(zone), wall.Add(-after).In(zone)
	switch {
	case offsetAt(earlier, zone) == before:
		return earlier
	case offsetAt(later, zone) == after:
		return later
	}
	change, _ := earlier.ZoneBounds()
	return change.In(zone)
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, offset := t.In(zone).Zone()
	return time.Duration(offset) * time.Second
}
