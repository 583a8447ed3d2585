// Package window says when the windows of a rollout are open: recurring times in the wall
// clock of a zone. It is pure; the clock is the caller's, and the zones are linked in, so
// that a host without a zone database knows the same windows.
//
// What a person reads on the clock counts: 22:00 for six hours is until 04:00 in every
// night, which are five or seven hours when the clocks change. An opening or a close in
// the hour that a change leaves out is the moment of the change; one in the hour that
// comes twice is its first.
package window

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the same zones wherever the program runs

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/robfig/cron/v3"
)

// Set is the union of some windows. One without windows is never open.
type Set struct{ windows []recurring }

type recurring struct {
	schedule cron.Schedule // in UTC, read as the wall clock of zone
	duration time.Duration
	zone     *time.Location
}

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// someDay is where the search for a first opening begins; any day does.
var someDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Parse reads windows; an error says which of them is wrong and how.
func Parse(specs []v1alpha1.Window) (*Set, error) {
	s := &Set{}
	for i, spec := range specs {
		w, err := parse(spec)
		if err != nil {
			return nil, fmt.Errorf("windows[%d]: %w", i, err)
		}
		s.windows = append(s.windows, w)
	}
	return s, nil
}

func parse(spec v1alpha1.Window) (recurring, error) {
	w := recurring{duration: spec.Duration.Duration, zone: time.UTC}
	if w.duration <= 0 {
		return w, fmt.Errorf("duration %s is not longer than 0s", spec.Duration.Duration)
	}
	if spec.TimeZone == "Local" {
		return w, fmt.Errorf(`timeZone "Local" would be that of the coordinator's pod: name one, such as Europe/Berlin`)
	}
	zone, err := time.LoadLocation(spec.TimeZone)
	if err != nil {
		return w, fmt.Errorf("timeZone %q is not known: use an IANA name such as Europe/Berlin", spec.TimeZone)
	}
	w.zone = zone
	schedule, err := weekdays(spec.Schedule)
	if err != nil {
		return w, fmt.Errorf("schedule %q: %w", spec.Schedule, err)
	}
	if w.schedule, err = parser.Parse("CRON_TZ=UTC " + schedule); err != nil {
		return w, fmt.Errorf("schedule %q: %w", spec.Schedule, err)
	}
	if w.schedule.Next(someDay).IsZero() {
		return w, fmt.Errorf("schedule %q never comes", spec.Schedule)
	}
	return w, nil
}

// weekdays rewrites the last field to what the cron library reads: it knows Sunday as 0
// only, and no range over the end of the week.
func weekdays(schedule string) (string, error) {
	fields := strings.Fields(schedule)
	if len(fields) != 5 {
		return "", fmt.Errorf("has %d fields, and 5 are needed: minute, hour, day of month, month, weekday", len(fields))
	}
	parts := strings.Split(fields[4], ",")
	for i, part := range parts {
		span, step, _ := strings.Cut(part, "/")
		from, to, isRange := strings.Cut(span, "-")
		first, ok := weekday(from)
		if !ok {
			continue // *, or a fault that the library words
		}
		last, ok := weekday(to)
		switch {
		case !isRange && step == "":
			parts[i] = fmt.Sprint(first % 7)
		case isRange && ok:
			expanded, err := expand(first, last, step)
			if err != nil {
				return "", err
			}
			parts[i] = expanded
		}
	}
	fields[4] = strings.Join(parts, ",")
	return strings.Join(fields, " "), nil
}

func expand(first, last int, step string) (string, error) {
	by := 1
	if step != "" {
		if len(step) != 1 || step < "1" || step > "7" {
			return "", fmt.Errorf("step %s of the weekdays is not from 1 to 7", step)
		}
		by = int(step[0] - '0')
	}
	if last < first {
		last += 7
	}
	var days []string
	for d := first; d <= last; d += by {
		days = append(days, fmt.Sprint(d%7))
	}
	return strings.Join(days, ","), nil
}

func weekday(text string) (int, bool) {
	if len(text) == 1 && text[0] >= '0' && text[0] <= '7' {
		return int(text[0] - '0'), true
	}
	for i, name := range []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} {
		if strings.EqualFold(text, name) {
			return i, true
		}
	}
	return 0, false
}
