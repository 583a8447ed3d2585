package dashboard

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Hub takes what the watches bring, and gives each viewer what it has not seen.
type Hub struct {
	namespace string

	mu      sync.Mutex
	fleet   *Fleet
	rows    map[string]json.RawMessage
	viewers map[*viewer]struct{}
	trouble map[string]string
}

// viewer is one open page. What it has yet to be sent is named, never queued.
type viewer struct {
	machines map[string]struct{}
	summary  bool
	wake     chan struct{} // holds one
}

// delta is what has become other for a viewer.
type delta struct {
	Rows    []json.RawMessage `json:"rows,omitempty"`
	Gone    []string          `json:"gone,omitempty"`
	Summary *Summary          `json:"summary,omitempty"`
}

func (d *delta) empty() bool { return len(d.Rows) == 0 && len(d.Gone) == 0 && d.Summary == nil }

// NewHub is the hub of a namespace of which nothing is known yet.
func NewHub(namespace, topologyKey string) *Hub {
	return &Hub{
		namespace: namespace, fleet: NewFleet(topologyKey),
		rows: map[string]json.RawMessage{}, viewers: map[*viewer]struct{}{}, trouble: map[string]string{},
	}
}

// Put takes an object as it is now; nobody may change it afterwards.
func (h *Hub) Put(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.show(h.fleet.Put(o))
}

// Remove takes an object away.
func (h *Hub) Remove(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.show(h.fleet.Remove(o))
}

// Trouble says that a source has failed, or with "" that it is well.
func (h *Hub) Trouble(source, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble[source] == text {
		return
	}
	h.trouble[source] = text
	if text == "" {
		delete(h.trouble, source)
	}
	h.show(Touched{Summary: true})
}

// machine as it is known; nil where there is none.
func (h *Hub) machine(name string) *v1alpha1.Machine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fleet.machines[name]
}

// show makes the rows anew, and tells the viewers of those that are no longer the same.
func (h *Hub) show(t Touched) {
	var changed []string
	for _, name := range t.Machines {
		if h.remake(name) {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 && !t.Summary {
		return
	}
	for v := range h.viewers {
		for _, name := range changed {
			v.machines[name] = struct{}{}
		}
		v.summary = v.summary || t.Summary
		v.rouse()
	}
}

func (h *Hub) remake(name string) (changed bool) {
	before, known := h.rows[name]
	row, there := h.fleet.row(name)
	if !there {
		delete(h.rows, name)
		return known
	}
	text, err := json.Marshal(row)
	if err != nil || bytes.Equal(before, text) { // a Row always encodes
		return false
	}
	h.rows[name] = text
	return true
}

func (v *viewer) rouse() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// join is a viewer that has seen nothing yet; nil where there are as many as most.
func (h *Hub) join(most int) *viewer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.viewers) >= most {
		return nil
	}
	v := &viewer{machines: make(map[string]struct{}, len(h.rows)), summary: true, wake: make(chan struct{}, 1)}
	for name := range h.rows {
		v.machines[name] = struct{}{}
	}
	h.viewers[v] = struct{}{}
	return v
}

func (h *Hub) leave(v *viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, v)
}

// take is what the viewer has not seen, of so many machines at most, in the order of their names.
func (h *Hub) take(v *viewer, most int) delta {
	h.mu.Lock()
	defer h.mu.Unlock()
	var d delta
	if v.summary {
		s := h.summary()
		d.Summary, v.summary = &s, false
	}
	names := slices.Sorted(maps.Keys(v.machines))
	for _, name := range names[:min(most, len(names))] {
		delete(v.machines, name)
		if row, there := h.rows[name]; there {
			d.Rows = append(d.Rows, row)
		} else {
			d.Gone = append(d.Gone, name)
		}
	}
	return d
}

func (h *Hub) summary() Summary {
	s := h.fleet.summary()
	s.Namespace = h.namespace
	s.Trouble = slices.Compact(slices.Sorted(maps.Values(h.trouble)))
	return s
}
