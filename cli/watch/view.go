package watch

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Styles of the view. A terminal that shows no colour has them taken out by who draws.
var (
	bold    = ansi.NewStyle().Bold()
	faint   = ansi.NewStyle().Faint()
	reverse = ansi.NewStyle().Reverse(true)
	red     = ansi.NewStyle().ForegroundColor(ansi.Red)
	yellow  = ansi.NewStyle().ForegroundColor(ansi.Yellow)
	green   = ansi.NewStyle().ForegroundColor(ansi.Green)
	cyan    = ansi.NewStyle().ForegroundColor(ansi.Cyan)
)

var classStyles = [...]ansi.Style{failed: red, atWork: cyan, waiting: yellow, done: green}

// smallest screen that has room for something of each.
const leastWidth, leastHeight = 40, 10

// layout is how many lines each part has.
type layout struct{ pools, blocked, machines, log int }

// layout shares the lines out: the head, two rules and the foot are there always, the table has what is left.
func (m Model) layout() layout {
	rest := m.height - 5 // head, header of the table, rule of the log, two of the foot
	l := layout{pools: min(len(m.pools), max(rest/4, 1)), log: min(m.Events, max(rest/5, 1))}
	if n := len(m.blockedRows()); n > 0 {
		l.blocked = min(n+1, max(rest/6, 2))
	}
	l.machines = max(rest-l.pools-l.blocked-l.log, 1)
	return l
}

func (m Model) blockedRows() []row {
	var out []row
	for _, r := range m.rows {
		if r.class == done { // the rows are sorted
			break
		}
		if r.blocked != "" {
			out = append(out, r)
		}
	}
	return out
}

// View implements tea.Model.
func (m Model) View() tea.View {
	v := tea.NewView(m.Frame())
	v.AltScreen, v.WindowTitle = true, "kubectl refit watch -n "+m.Namespace
	return v
}

// Frame is the screen: exactly as many lines as it has, none longer than it is wide.
func (m Model) Frame() string {
	if m.width < leastWidth || m.height < leastHeight {
		return cut(fmt.Sprintf("at least %dx%d, please", leastWidth, leastHeight), m.width)
	}
	var lines []string
	if m.page != nil {
		lines = m.pageLines()
	} else {
		l := m.layout()
		lines = append(lines, m.head())
		lines = append(lines, m.poolLines(l.pools)...)
		lines = append(lines, m.blockedLines(l.blocked)...)
		lines = append(lines, m.machineLines(l.machines)...)
		lines = append(lines, m.logLines(l.log)...)
	}
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	lines = append(lines[:m.height-2], m.foot()...)
	return strings.Join(lines, "\n")
}

func (m Model) head() string {
	var counts []string
	total := 0
	for class, n := range m.counts {
		total += n
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, classNames[class]))
		}
	}
	text := fmt.Sprintf("refit %s: %d machines", m.Namespace, total)
	if len(counts) > 0 {
		text += ": " + strings.Join(counts, ", ")
	}
	if !m.synced {
		text += " (still reading)"
	}
	clock := m.now.UTC().Format("15:04:05Z")
	return bold.Styled(fit(text, m.width-len(clock)-1) + " " + clock)
}

func (m Model) poolLines(room int) []string {
	if room == 0 {
		return nil
	}
	name := 4
	for _, p := range m.pools {
		name = max(name, min(len(p.name), 20))
	}
	var out []string
	for i, p := range m.pools {
		if i == room-1 && len(m.pools) > room {
			out = append(out, faint.Styled(fmt.Sprintf("and %d more pools", len(m.pools)-i)))
			break
		}
		out = append(out, m.poolLine(p, name))
	}
	return out
}

func (m Model) poolLine(p pool, name int) string {
	const bar = 16
	text := fmt.Sprintf(" %d/%d", p.count[done], p.total)
	for _, more := range []string{p.state(), p.leftText(), p.says} {
		if more != "" {
			text += "  " + more
		}
	}
	if p.verdict == goesOn && p.says == "" && p.target != "" {
		text += "  to " + p.target
	}
	style := green
	switch {
	case p.verdict == halted || p.count[failed] > 0:
		style = red
	case p.verdict == paused:
		style = yellow
	}
	return fit(p.name, name) + " " + style.Styled(progressBar(p.count[done], p.total, bar)) + cut(text, m.width-name-bar-3)
}

// progressBar is full only when all are done.
func progressBar(done, total, width int) string {
	filled := 0
	if total > 0 {
		filled = done * width / total
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", width-filled) + "]"
}

func (m Model) blockedLines(room int) []string {
	if room == 0 {
		return nil
	}
	rows := m.blockedRows()
	out := []string{m.rule(fmt.Sprintf("blocked drains (%d)", len(rows)))}
	for i, r := range rows {
		if len(out) == room {
			break
		}
		text := r.machine.Name + "  " + r.blocked
		if len(out) == room-1 && i < len(rows)-1 {
			text = fmt.Sprintf("%s  (and %d more)", cut(text, m.width-20), len(rows)-1-i)
		}
		out = append(out, red.Styled(cut(text, m.width)))
	}
	return out
}

func (m Model) machineLines(room int) []string {
	name, phase, kubelet := 12, 11, 9
	shown := m.rows[m.top:min(m.top+room, len(m.rows))]
	for _, r := range shown {
		name = max(name, min(len(r.machine.Name), m.width/3))
		kubelet = max(kubelet, min(len(r.kubelet), 14))
	}
	header := fit("MACHINE", name) + " " + fit("PHASE", phase) + " " + fit("KUBELET", kubelet) + " "
	switch {
	case m.filter != "":
		header += fmt.Sprintf("SAYS (%d with %q)", len(m.rows), m.filter)
	case len(m.rows) > room:
		header += fmt.Sprintf("SAYS (%d-%d of %d)", m.top+1, m.top+len(shown), len(m.rows))
	default:
		header += "SAYS"
	}
	out := []string{bold.Styled(cut(header, m.width))}
	for i, r := range shown {
		text := " " + fit(r.kubelet, kubelet) + " " + cut(r.says, m.width-name-phase-kubelet-3)
		if m.top+i == m.cursor {
			out = append(out, reverse.Styled(fit(fit(r.machine.Name, name)+" "+fit(r.phase, phase)+text, m.width)))
			continue
		}
		out = append(out, fit(r.machine.Name, name)+" "+classStyles[r.class].Styled(fit(r.phase, phase))+strings.TrimRight(text, " "))
	}
	if len(shown) == 0 && m.synced {
		out = append(out, faint.Styled(cut("no machines", m.width)))
	}
	for len(out) < room+1 {
		out = append(out, "")
	}
	return out
}

func (m Model) logLines(room int) []string {
	out := []string{m.rule("events")}
	for _, line := range m.log[max(len(m.log)-room, 0):] {
		out = append(out, cut(fit(m.age(line), 5)+" "+line.short(), m.width))
	}
	return out
}

func (m Model) age(l Line) string { return duration.HumanDuration(max(m.now.Sub(l.Time), 0)) }

// short is a line for who knows the namespace.
func (l Line) short() string {
	text := l.Name
	if l.Kind == "MachineDeployment" {
		text = "pool " + l.Name
	}
	if l.From != "" {
		text += " " + l.From + " ->"
	}
	if l.To != "" {
		text += " " + l.To
	}
	if l.Message != "" {
		text += ": " + l.Message
	}
	return text
}

func (m Model) rule(title string) string {
	return faint.Styled(fit("-- "+title+" "+strings.Repeat("-", max(m.width-len(title)-4, 0)), m.width))
}

func (m Model) pageLines() []string {
	out := []string{bold.Styled(cut(m.pageTitle, m.width))}
	for _, line := range m.page[m.pageTop:] {
		out = append(out, cut(line, m.width))
	}
	return out
}

// foot is one line of what goes on and one of the keys.
func (m Model) foot() []string {
	said, keys := m.answer, "p pause  r resume  t retry  w why  / filter  ? help  q quit"
	switch {
	case m.asked != nil:
		said = m.asked.text
	case m.typing:
		said, keys = "/"+m.filter, "Enter keeps the filter, Esc ends it"
	case m.page != nil:
		keys = "up and down scroll, Esc goes back"
	}
	style := yellow
	switch {
	case m.trouble != "" && m.asked == nil && !m.typing && said == "":
		said, style = m.trouble, red
	case m.fleet.stopped && said == "":
		said, style = "STOPPED: no grant is given in this namespace until kubectl refit resume --all", red
	}
	return []string{style.Styled(cut(said, m.width)), faint.Styled(cut(keys, m.width))}
}
