package watch

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	corev1 "k8s.io/api/core/v1"
)

// help is every key, for the page of ?.
var help = []string{
	"up, down, k, j     select a machine",
	"PgUp, PgDn         a screen up or down",
	"g, G, Home, End    the first or the last",
	"/                  show only machines with a text in name, phase, version or message; Esc ends it",
	"w, Enter           why the selected machine waits: every gate, and what to type",
	"p                  pause the pool of the selected machine (the machine, where it has no pool); asks",
	"r                  resume it; asks",
	"t                  retry the selected machine; asks",
	"q, Ctrl-C          quit; nothing that runs is changed by that",
	"",
	"Machines are sorted: failed, at work, waiting, up to date. An estimate is made of how long operations of the",
	"pool have taken before, and of how many go at once; it does not foresee windows, gates and blocked drains.",
}

func isEvent(c Change) bool {
	_, is := c.Object.(*corev1.Event)
	return is
}

// key is what a key does where the view stands.
func (m Model) key(key string) (tea.Model, tea.Cmd) {
	switch {
	case key == "ctrl+c":
		return m, tea.Quit
	case m.asked != nil:
		return m.answered(key)
	case m.typing:
		return m.typed(key), nil
	case m.page != nil:
		return m.turned(key), nil
	}
	switch key {
	case "q":
		return m, tea.Quit
	case "?":
		m.page, m.pageTitle, m.pageTop = help, "keys", 0
	case "/":
		m.typing, m.answer = true, ""
	case "esc":
		m.filter, m.answer = "", ""
		return m.tabled(), nil
	case "p":
		return m.ask(Pause), nil
	case "r":
		return m.ask(Resume), nil
	case "t":
		return m.ask(Retry), nil
	case "w", "enter":
		if m.selected == "" {
			return m, nil
		}
		m.answer = "asking why " + m.selected + " …"
		return m, m.Deeds.Why(m.selected)
	default:
		return m.moved(key), nil
	}
	return m, nil
}

func (m Model) moved(key string) Model {
	room := max(m.layout().machines, 1)
	switch key {
	case "up", "k":
		m.cursor--
	case "down", "j":
		m.cursor++
	case "pgup", "b":
		m.cursor -= room
	case "pgdown", "space", "f":
		m.cursor += room
	case "home", "g":
		m.cursor = 0
	case "end", "G":
		m.cursor = len(m.rows) - 1
	default:
		return m
	}
	m.answer = ""
	return m.scrolled()
}

// answered carries out what was asked about after a y; any other key is a no.
func (m Model) answered(key string) (tea.Model, tea.Cmd) {
	q := *m.asked
	m.asked, m.answer = nil, "nothing was changed"
	if key != "y" && key != "Y" {
		return m, nil
	}
	m.answer = string(q.verb) + " " + q.target + " …"
	return m, m.Deeds.Do(q.verb, q.target)
}

// typed is a key of a filter.
func (m Model) typed(key string) Model {
	switch {
	case key == "enter":
		m.typing = false
		return m
	case key == "esc":
		m.typing, m.filter = false, ""
	case key == "backspace":
		letters := []rune(m.filter)
		m.filter = string(letters[:max(len(letters)-1, 0)])
	case key == "space":
		m.filter += " "
	case len([]rune(key)) == 1:
		m.filter += clean(key)
	default:
		return m
	}
	m.cursor, m.selected = 0, ""
	return m.tabled()
}

// turned is a key on a page: it scrolls, or leaves.
func (m Model) turned(key string) Model {
	room := max(m.height-3, 1)
	switch key {
	case "down", "j":
		m.pageTop++
	case "up", "k":
		m.pageTop--
	case "pgdown", "space":
		m.pageTop += room
	case "pgup":
		m.pageTop -= room
	default:
		if strings.Contains("q esc enter w ?", key) {
			m.page = nil
		}
		return m
	}
	m.pageTop = max(min(m.pageTop, len(m.page)-room), 0)
	return m
}
