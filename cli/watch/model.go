package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Messages of who runs the view.
type (
	// Batch are changes, in their order, and the time.
	Batch struct {
		Changes []Change
		Now     time.Time
		// Synced says that all that stood there has been read.
		Synced bool
		// Trouble is what cannot be watched, and why; "" when all can.
		Trouble string
	}
	// Clock is the time, once in a while, for what is shown of it.
	Clock time.Time
	// Done is the answer to a deed.
	Done struct {
		Text string
		Err  error
	}
	// Explained is the answer to Why.
	Explained struct {
		Machine, Text string
		Err           error
	}
)

// Verb is what a key asks for.
type Verb string

// The verbs.
const (
	Pause  Verb = "pause"
	Resume Verb = "resume"
	Retry  Verb = "retry"
)

// Deeds carry out what keys ask for, outside of the view. A target is machine/NAME or machinedeployment/NAME.
type Deeds interface {
	Do(verb Verb, target string) tea.Cmd
	Why(machine string) tea.Cmd
}

// Options of a Model.
type Options struct {
	Namespace string
	Pools     []string
	// Events is how many lines of the log are kept.
	Events    int
	UntilDone bool
	Deeds     Deeds
}

// Model is what is looked at. It is a value: Update returns the next one.
type Model struct {
	Options
	fleet   *Fleet
	rows    []row
	pools   []pool
	counts  [len(classNames)]int
	log     []Line
	now     time.Time
	synced  bool
	trouble string
	outcome Outcome

	width, height int
	selected      string // name, so that it stays the same machine when the order changes
	cursor, top   int
	filter        string
	typing        bool
	asked         *question
	answer        string
	page          []string // a text over the table: why, or help
	pageTitle     string
	pageTop       int
}

// question is a deed that waits for a yes.
type question struct {
	verb         Verb
	target, text string
}

// New is a view of nothing yet.
func New(o Options) Model {
	return Model{Options: o, fleet: NewFleet(o.Pools...), width: 80, height: 24}
}

// Init implements tea.Model.
func (m Model) Init() tea.Cmd { return nil }

// Outcome is what --until-done has come to.
func (m Model) Outcome() Outcome { return m.outcome }

// Update implements tea.Model.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		return m.scrolled(), nil
	case Batch:
		return m.take(msg)
	case Clock:
		m.now = time.Time(msg)
		return m, nil
	case Done:
		m.answer = clean(msg.Text)
		if msg.Err != nil {
			m.answer = "error: " + clean(msg.Err.Error())
		}
		return m, nil
	case Explained:
		return m.explained(msg), nil
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

func (m Model) take(b Batch) (tea.Model, tea.Cmd) {
	m.now, m.trouble = b.Now, clean(b.Trouble)
	for _, c := range b.Changes {
		for _, line := range m.fleet.Apply(c, b.Now) {
			if !c.First || isEvent(c) {
				m.log = append(m.log, line)
			}
		}
	}
	if b.Synced && !m.synced {
		m.synced = true
		slices.SortStableFunc(m.log, func(a, b Line) int { return a.Time.Compare(b.Time) })
	}
	if more := len(m.log) - m.Events; more > 0 {
		m.log = slices.Clone(m.log[more:])
	}
	if len(b.Changes) > 0 || b.Synced {
		m = m.tabled()
	}
	if m.UntilDone && m.synced {
		if m.outcome = m.fleet.Outcome(m.now); m.outcome.Over {
			return m, tea.Quit
		}
	}
	return m, nil
}

// tabled makes the table anew.
func (m Model) tabled() Model {
	all, pools := m.fleet.table(m.now)
	m.pools, m.counts = pools, [len(classNames)]int{}
	for _, r := range all {
		m.counts[r.class]++
	}
	m.rows = all
	if m.filter != "" {
		wanted := strings.ToLower(m.filter)
		m.rows = slices.DeleteFunc(all, func(r row) bool { return !r.matches(wanted) })
	}
	if i := slices.IndexFunc(m.rows, func(r row) bool { return r.machine.Name == m.selected }); i >= 0 {
		m.cursor = i
	}
	return m.scrolled()
}

// matches says whether a machine has the text in its name, its phase, its version or what it says.
func (r *row) matches(wanted string) bool {
	for _, text := range []string{r.machine.Name, r.phase, r.kubelet, r.says} {
		if strings.Contains(strings.ToLower(text), wanted) {
			return true
		}
	}
	return false
}

// scrolled keeps the cursor on a machine, and that machine on the screen.
func (m Model) scrolled() Model {
	m.cursor = max(min(m.cursor, len(m.rows)-1), 0)
	m.selected = ""
	if len(m.rows) > 0 {
		m.selected = m.rows[m.cursor].machine.Name
	}
	room := m.layout().machines
	m.top = max(min(m.top, m.cursor, len(m.rows)-room), m.cursor-room+1, 0)
	return m
}

func (m Model) explained(e Explained) Model {
	m.answer, m.pageTitle, m.pageTop = "", "why "+e.Machine, 0
	text := e.Text
	if e.Err != nil {
		text = "error: " + e.Err.Error()
	}
	m.page = nil
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		m.page = append(m.page, clean(line))
	}
	return m
}

// target is what pause and resume are about: the pool of the selected machine, or itself where it has none.
func (m Model) target() (target, name string) {
	if len(m.rows) == 0 {
		return "", ""
	}
	r := m.rows[m.cursor]
	if in := m.fleet.poolOf(r.machine); in != "" {
		return "machinedeployment/" + in, "pool " + in
	}
	return "machine/" + r.machine.Name, "machine " + r.machine.Name
}

// ask puts the question before a deed.
func (m Model) ask(verb Verb) Model {
	target, name := m.target()
	if target == "" {
		m.answer = "there is no machine to " + string(verb)
		return m
	}
	if verb == Retry {
		target, name = "machine/"+m.selected, "machine "+m.selected
	}
	m.answer = ""
	m.asked = &question{verb: verb, target: target, text: fmt.Sprintf("%s %s? y/N", verb, name)}
	return m
}
