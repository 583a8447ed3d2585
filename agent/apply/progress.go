package apply

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/redact"
)

// quiet is how long a step may run before a log says that it does.
const quiet = 10 * time.Second

// Progress shows a journal as a table that grows: a line for each step that has ended,
// and on a terminal one more that lives, for the step that runs.
type Progress struct {
	W io.Writer
	// Width of the terminal; 0 is no terminal: then nothing is written over, and a step
	// that takes long, or waits for something, has a line of its own for it.
	Width  int
	Colour bool
	Now    func() time.Time

	begun bool
	lines map[string]string // what was said last of a row, by its label
	live  bool              // the last line on the terminal will be written over
}

// row is one step for people.
type row struct {
	label   string // 3/9, or undo 1/4
	state   journal.StepState
	took    time.Duration
	what    string
	message string
}

// Show writes what is new in a look.
func (p *Progress) Show(l Look) {
	if !p.begun {
		p.begun, p.lines = true, map[string]string{}
		p.line("STEP", "STATE", "ELAPSED", "WHAT")
	}
	var running *row
	for _, row := range rows(l.Record, p.Now()) {
		if row.state == journal.StepPending {
			continue
		}
		if row.state == journal.StepBegun {
			running = &row
			continue
		}
		p.end(row)
	}
	switch {
	case running == nil:
	case l.Dead:
		p.dead(*running)
	default:
		p.run(*running)
	}
}

// dead shows the step at which the executor ended, once.
func (p *Progress) dead(r row) {
	if p.lines[r.label] == stateDead {
		return
	}
	p.lines[r.label] = stateDead
	p.wipe()
	p.line(r.label, stateDead, seconds(r.took), oneLine(r.what+", its executor has ended"))
}

// stateDead is the state of a step that the journal says to run, and nobody works on.
const stateDead = "stopped"

// Close leaves the terminal at the beginning of a line.
func (p *Progress) Close() {
	if p.live {
		_, _ = fmt.Fprintln(p.W)
		p.live = false
	}
}

func (p *Progress) end(r row) {
	if p.lines[r.label] == string(r.state) {
		return
	}
	p.lines[r.label] = string(r.state)
	p.wipe()
	what := r.what
	if r.message != "" {
		what += " (" + r.message + ")"
	}
	p.line(r.label, stateText(r.state), seconds(r.took), oneLine(what))
}

// run shows the step at hand.
func (p *Progress) run(r row) {
	what := oneLine(r.what + prefixed(", ", r.message))
	if p.Width > 0 {
		p.wipe()
		text := fmt.Sprintf(layout, r.label, stateText(r.state), seconds(r.took), what)
		_, _ = io.WriteString(p.W, p.painted(clip(text, p.Width-1), stateText(r.state)))
		p.live = true
		return
	}
	said := string(r.state) + r.message
	if p.lines[r.label] == said || r.message == "" && r.took < quiet {
		return
	}
	p.lines[r.label] = said
	p.line(r.label, stateText(r.state), seconds(r.took), what)
}

const layout = "%9s  %-8s %8s  %s"

func (p *Progress) line(label, state, took, what string) {
	text := strings.TrimRight(fmt.Sprintf(layout, label, state, took, what), " ")
	_, _ = fmt.Fprintln(p.W, p.painted(text, state))
}

func (p *Progress) wipe() {
	if p.live {
		_, _ = io.WriteString(p.W, "\r\x1b[K")
		p.live = false
	}
}

var colours = map[string]string{"done": "32", "failed": "31", "running": "33", "undone": "36", stateDead: "31"}

// painted colours the state within a line; the layout is done before, so that columns stay.
func (p *Progress) painted(text, state string) string {
	colour := colours[state]
	if !p.Colour || colour == "" {
		return text
	}
	return strings.Replace(text, "  "+state, "  \x1b["+colour+"m"+state+"\x1b[0m", 1)
}

func stateText(s journal.StepState) string {
	if s == journal.StepBegun {
		return "running"
	}
	return strings.ToLower(string(s))
}

// rows are the steps of a record, then what undoes them.
func rows(r journal.Record, now time.Time) []row {
	var out []row
	for i, s := range r.Steps {
		out = append(out, rowOf(fmt.Sprintf("%d/%d", i+1, len(r.Steps)), s, r.Operation.Plan.Steps[i].Describe(), now))
	}
	for i, s := range r.Rollback {
		what := string(s.Kind)
		if s.Step != nil {
			what = s.Step.Describe()
		}
		out = append(out, rowOf(fmt.Sprintf("undo %d/%d", i+1, len(r.Rollback)), s, what, now))
	}
	return out
}

func rowOf(label string, s journal.StepRecord, what string, now time.Time) row {
	took := s.Duration()
	if s.Start != nil && s.End == nil {
		took = now.Sub(*s.Start)
	}
	return row{label, s.State, max(took, 0), what, s.Message}
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// oneLine keeps a table a table.
func oneLine(text string) string {
	const limit = 200
	return clip(redact.URIs(strings.Join(strings.Fields(text), " ")), limit)
}

func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:max(width-1, 0)]) + "…"
}
