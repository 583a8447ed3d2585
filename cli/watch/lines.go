package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Lines writes changes one below another, for a pipe or a log.
type Lines struct {
	out   io.Writer
	json  bool
	fleet *Fleet
	since time.Time
}

// NewLines writes as text or as JSON. Events of before its begin are history, and left out.
func NewLines(out io.Writer, asJSON bool, since time.Time, pools ...string) *Lines {
	return &Lines{out: out, json: asJSON, fleet: NewFleet(pools...), since: since}
}

// Take writes what changes mean.
func (l *Lines) Take(b Batch) error {
	for _, c := range b.Changes {
		for _, line := range l.fleet.Apply(c, b.Now) {
			if isEvent(c) && line.Time.Before(l.since.Truncate(time.Second)) {
				continue
			}
			if err := l.write(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// Outcome is what --until-done waits for.
func (l *Lines) Outcome(now time.Time) Outcome { return l.fleet.Outcome(now) }

func (l *Lines) write(line Line) error {
	line.Time = line.Time.UTC()
	text := line.Time.Format(time.RFC3339) + " " + line.full()
	if l.json {
		encoded, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("encoding a change: %w", err)
		}
		text = string(encoded)
	}
	_, err := fmt.Fprintln(l.out, text)
	return err
}

// full is a line for who greps.
func (l Line) full() string {
	if l.Kind == "Machine" && l.Pool != "" {
		l.Name += " (" + l.Pool + ")"
	}
	return l.short()
}
