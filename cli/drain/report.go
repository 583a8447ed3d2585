package drain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/status"
)

// Reporter tells a person or a program what happens.
type Reporter interface {
	Cordoned(node string, changed bool)
	Event(node string, e drain.Event)
	Still(node string, p *Progress)
	Ended(node string, end End)
	GivenBack(node, how string)
}

// End of the drain of one node.
type End struct {
	Result drain.Result
	Err    error
	// Flags that would help, where any do.
	Flags []string
	// Cordon says what the cordon of a drained node has come to; Kept that pods were kept away all the time.
	Cordon string
	Kept   bool
}

// Progress is how far the drain of one node is.
type Progress struct {
	total, remaining int
	blocked          map[string]drain.Event
}

func newProgress() *Progress { return &Progress{blocked: map[string]drain.Event{}} }

func (p *Progress) take(e drain.Event) {
	p.total, p.remaining = e.Total, e.Remaining
	switch name := e.Namespace + "/" + e.Name; e.Kind {
	case drain.EventBlocked:
		p.blocked[name] = e
	case drain.EventEvicted, drain.EventDeleted, drain.EventGone, drain.EventSkipped:
		delete(p.blocked, name)
	case drain.EventWaiting, drain.EventWarning:
	}
}

// worst are the blocked pods, what most needs a person first.
func (p *Progress) worst() []drain.Event {
	return slices.SortedFunc(maps.Values(p.blocked), func(a, b drain.Event) int {
		return cmp.Or(drain.CompareBlocked(a, b), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
}

// Text reports in lines for people.
type Text struct {
	Out io.Writer
	// Colour is for a terminal.
	Colour bool
}

const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

func (t Text) line(colour, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.Colour && colour != "" {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	fmt.Fprintln(t.Out, text)
}

// Cordoned implements Reporter.
func (t Text) Cordoned(node string, changed bool) {
	if changed {
		t.line("", "node/%s cordoned", node)
		return
	}
	t.line("", "node/%s already cordoned; it stays so whatever comes", node)
}

// Event implements Reporter.
func (t Text) Event(node string, e drain.Event) {
	pod := "pod " + e.Namespace + "/" + e.Name
	switch e.Kind {
	case drain.EventEvicted:
		t.line("", "node/%s %s evicted, and is ending", node, pod)
	case drain.EventGone:
		t.line("", "node/%s %s gone, %d of %s left", node, pod, e.Remaining, status.Count(e.Total, "pod"))
	case drain.EventBlocked:
		t.line(yellow, "node/%s %s blocked since %s: %s: %s", node, pod, clock(e.Since), e.Reason, e.Message)
	case drain.EventDeleted, drain.EventSkipped, drain.EventWaiting, drain.EventWarning:
		if e.Name == "" {
			pod = ""
		}
		t.line(yellow, "node/%s %s", node, strings.TrimSpace(pod+" "+e.Message))
	}
}

// Still implements Reporter.
func (t Text) Still(node string, p *Progress) {
	text := fmt.Sprintf("node/%s %d of %s left", node, p.remaining, status.Count(p.total, "pod"))
	for _, e := range p.worst() {
		text += fmt.Sprintf("; %s/%s blocked since %s (%s)", e.Namespace, e.Name, clock(e.Since), e.Reason)
	}
	t.line("", "%s", text)
}

// Ended implements Reporter.
func (t Text) Ended(node string, e End) {
	r, err := e.Result, e.Err
	took := r.Duration.Round(time.Second)
	var b *drain.Blocked
	switch {
	case err == nil:
		colour := green
		if !e.Kept {
			colour = yellow
		}
		t.line(colour, "node/%s drained in %s: %s; %s", node, took, summary(r), e.Cordon)
	case errors.As(err, &b):
		text := fmt.Sprintf("node/%s not drained after %s: %s: %s", node, took, b.Reason, b.Message)
		if len(e.Flags) > 0 {
			text += " (here: " + strings.Join(e.Flags, " ") + ")"
		}
		t.line(red, "%s", text)
	default:
		t.line(red, "node/%s not drained after %s: %v", node, took, err)
	}
}

// GivenBack implements Reporter.
func (t Text) GivenBack(node, how string) { t.line("", "node/%s %s", node, how) }

func summary(r drain.Result) string {
	text := status.Count(r.Evicted, "pod") + " evicted"
	if r.Awaited > 0 {
		text += fmt.Sprintf(", %d were leaving already", r.Awaited)
	}
	if len(r.Remaining) > 0 {
		text += fmt.Sprintf(", %d not waited for", len(r.Remaining))
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// JSON reports one line of JSON for each event.
type JSON struct {
	Out io.Writer
	Now func() time.Time
}

// Line is what JSON writes.
type Line struct {
	Time      time.Time    `json:"time"`
	Node      string       `json:"node"`
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	Since     *time.Time   `json:"since,omitempty"`
	Total     int          `json:"total,omitempty"`
	Remaining *int         `json:"remaining,omitempty"`
	Evicted   *int         `json:"evicted,omitempty"`
	Seconds   *float64     `json:"seconds,omitempty"`
	Pods      []BlockedPod `json:"pods,omitempty"`
}

// BlockedPod is a pod that has kept a node from being drained.
type BlockedPod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Budgets   []string  `json:"budgets,omitempty"`
	Since     time.Time `json:"since"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
}

// Kinds of lines beside those of the events of a drain.
const (
	kindCordoned  = "Cordoned"
	kindDrained   = "Drained"
	kindNot       = "NotDrained"
	kindGivenBack = "GivenBack"
)

func (j JSON) write(l Line) {
	if l.Time.IsZero() {
		l.Time = j.Now()
	}
	l.Time = l.Time.UTC()
	if text, err := json.Marshal(l); err == nil { // it is plain data
		fmt.Fprintln(j.Out, string(text))
	}
}

// Cordoned implements Reporter.
func (j JSON) Cordoned(node string, changed bool) {
	message := ""
	if !changed {
		message = "it was cordoned before"
	}
	j.write(Line{Node: node, Kind: kindCordoned, Message: message})
}

// Event implements Reporter.
func (j JSON) Event(node string, e drain.Event) {
	l := Line{Time: e.Time, Node: node, Kind: string(e.Kind), Namespace: e.Namespace, Name: e.Name, Reason: e.Reason, Message: e.Message, Total: e.Total, Remaining: &e.Remaining}
	if e.Kind == drain.EventBlocked {
		since := e.Since.UTC()
		l.Since = &since
	}
	j.write(l)
}

// Still implements Reporter: a program needs no reminder.
func (JSON) Still(string, *Progress) {}

// Ended implements Reporter.
func (j JSON) Ended(node string, e End) {
	r, err := e.Result, e.Err
	seconds := r.Duration.Seconds()
	l := Line{Node: node, Kind: kindDrained, Message: e.Cordon, Evicted: &r.Evicted, Seconds: &seconds}
	var b *drain.Blocked
	switch {
	case errors.As(err, &b):
		l.Kind, l.Reason, l.Message = kindNot, b.Reason, b.Message
		for _, p := range b.Pods {
			l.Pods = append(l.Pods, BlockedPod{p.Namespace, p.Name, p.PDBs, p.Since.UTC(), p.Reason, p.Message})
		}
	case err != nil:
		l.Kind, l.Message = kindNot, err.Error()
	}
	j.write(l)
}

// GivenBack implements Reporter.
func (j JSON) GivenBack(node, how string) {
	j.write(Line{Node: node, Kind: kindGivenBack, Message: how})
}
