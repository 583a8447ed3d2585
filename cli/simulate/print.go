package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/coordinator/simulation"
	"github.com/refit-dev/refit/pkg/status"
)

// Printer writes entries as they come: a table for people, or one JSON object a line.
type Printer struct {
	Out io.Writer
	// Format is table, wide or json.
	Format string
	// Start is what times in the table count from.
	Start time.Time

	begun bool
	err   error
}

// widths of the table's columns. The transcript is printed as it comes, and so they are fixed.
const (
	widthTime    = 10
	widthAction  = 9
	widthMachine = 20
	widthReason  = 24
)

// Entry prints one line. The first error is kept for Err.
func (p *Printer) Entry(e simulation.Entry) {
	if p.Format == "json" {
		p.json(e)
		return
	}
	if !p.begun {
		p.begun = true
		p.line("TIME", "AT", "ACTION", "MACHINE", "REASON", "MESSAGE")
	}
	p.line(Offset(e.Time.Sub(p.Start)), e.Time.UTC().Format(time.RFC3339), e.Action, e.Machine, e.Reason, e.Message)
}

// Err is the first error of writing.
func (p *Printer) Err() error { return p.err }

func (p *Printer) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.Out, text)
	}
}

func (p *Printer) json(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		p.err = fmt.Errorf("encoding an entry: %w", err)
		return
	}
	p.write(string(text) + "\n")
}

func (p *Printer) line(offset, at, action, machine, reason, message string) {
	text := fmt.Sprintf("%-*s ", widthTime, offset)
	if p.Format == "wide" {
		text += fmt.Sprintf("%-20s ", at)
	}
	text += fmt.Sprintf("%-*s %-*s %-*s %s", widthAction, action, widthMachine, machine, widthReason, reason, message)
	p.write(strings.TrimRight(text, " ") + "\n")
}

// Offset is a time after the start, such as 1h02m30s.
func Offset(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0:
		return fmt.Sprintf("%dh%02dm%02ds", h, m, s)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	}
	return fmt.Sprintf("%ds", s)
}

// summary is the last line for programs.
type summary struct {
	simulation.Entry
	simulation.Summary
}

// Summary prints what a simulation comes to, at the simulated time now.
func (p *Printer) Summary(s simulation.Summary, now time.Time) {
	if p.Format == "json" {
		p.json(summary{simulation.Entry{Time: now, Action: simulation.ActionSummary, Reason: string(s.Outcome)}, s})
		return
	}
	var b strings.Builder
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(&b, "%-18s "+format+"\n", append([]any{name}, args...)...)
	}
	b.WriteString("\n")
	row("OUTCOME", "%s", s.Outcome)
	row("MAKESPAN", "%s", Offset(s.Makespan))
	row("MACHINES", "%d: %s", s.Machines, states(s.States))
	row("DRAINS", "%d%s", s.Drains, mostOf(s))
	if s.Evictions > 0 {
		row("EVICTIONS", "%d", s.Evictions)
	}
	row("MOST UNAVAILABLE", "%s at once", status.Count(s.MostUnavailable, "machine"))
	p.write(b.String())
	p.waiting(s.Waiting)
}

func mostOf(s simulation.Summary) string {
	if s.Drains == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f per machine, at most %d (%s)", float64(s.Drains)/float64(s.Machines), s.MostDrains, s.MostDrained)
}

func states(of map[string]int) string {
	parts := make([]string, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(parts, ", ")
}

// mostWaiting keeps the end readable; programs get all.
const mostWaiting = 20

func (p *Printer) waiting(list []simulation.Waiting) {
	if len(list) == 0 {
		return
	}
	p.write("\nNot there yet:\n")
	for i := range list[:min(len(list), mostWaiting)] {
		w := &list[i]
		p.write(fmt.Sprintf("  %-*s %-10s %-*s %s\n", widthMachine, w.Name(), w.State, widthReason, w.Reason, w.Message))
	}
	if more := len(list) - mostWaiting; more > 0 {
		p.write(fmt.Sprintf("  and %d more\n", more))
	}
}
