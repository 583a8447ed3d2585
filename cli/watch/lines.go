package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Lines writes changes one below another, for a pipe or a log.
type Lines struct {
	out   io.Writer
	json  bool
	fleet *Fleet
	since time.Time
	// first is what was there when the watch began, until all of it has been read.
	first []Change
	read  bool
}

// NewLines writes as text or as JSON. Events of before its begin are history, and left out.
func NewLines(out io.Writer, asJSON bool, since time.Time, pools ...string) *Lines {
	return &Lines{out: out, json: asJSON, fleet: NewFleet(pools...), since: since}
}

// Take writes what changes mean, once everything that is there has been read: a machine is
// told with its pool.
func (l *Lines) Take(b Batch) error {
	changes := b.Changes
	if !l.read {
		l.first = append(l.first, changes...)
		if !b.Synced {
			return nil
		}
		slices.SortStableFunc(l.first, func(a, b Change) int { return rank(a) - rank(b) })
		changes, l.first, l.read = l.first, nil, true
	}
	for _, c := range changes {
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

// rank orders what is read first: pools before their machines, events last.
func rank(c Change) int {
	switch c.Object.(type) {
	case *v1alpha1.MachineDeployment:
		return 0
	case *v1alpha1.Ledger:
		return 1
	case *corev1.Event:
		return 3
	}
	return 2
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
