package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Change is one object as a watch has it: a Machine, a MachineDeployment, a Ledger or an Event.
type Change struct {
	Object  client.Object
	Deleted bool
	// First says that it stood there when the watch began: that is no news.
	First bool
}

// Line is one thing that happened.
type Line struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Pool    string    `json:"pool,omitempty"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Message string    `json:"message,omitempty"`
}

// Fleet is what is known of a namespace.
type Fleet struct {
	only      []string
	machines  map[string]row
	order     order
	pools     map[string]*v1alpha1.MachineDeployment
	selectors map[string]labels.Selector
	slots     map[string]*v1alpha1.Slot
	stopped   bool
}

// NewFleet knows nothing yet. Where pools are named only those count, with their machines.
func NewFleet(only ...string) *Fleet {
	return &Fleet{
		only: only, machines: map[string]row{}, pools: map[string]*v1alpha1.MachineDeployment{},
		selectors: map[string]labels.Selector{}, slots: map[string]*v1alpha1.Slot{},
	}
}

// Apply takes a change in, and says in lines what it means to people; none where it means nothing.
func (f *Fleet) Apply(c Change, now time.Time) []Line {
	switch o := c.Object.(type) {
	case *v1alpha1.Machine:
		return f.machine(o, c, now)
	case *v1alpha1.MachineDeployment:
		return f.pool(o, c, now)
	case *v1alpha1.Ledger:
		return f.ledger(o, c, now)
	case *corev1.Event:
		return f.event(o, c)
	}
	return nil
}

func (f *Fleet) machine(m *v1alpha1.Machine, c Change, now time.Time) []Line {
	before, known := f.machines[m.Name]
	f.order.move(m.Name)
	if c.Deleted {
		delete(f.machines, m.Name)
		return f.shown(m, Line{Time: now, Kind: "Machine", Name: m.Name, From: before.phase, To: "Deleted"})
	}
	r := rowOf(m, f.slots[m.Name] != nil)
	f.machines[m.Name] = r
	if known && before.phase == r.phase && before.says == r.says && before.kubelet == r.kubelet {
		return nil
	}
	line := Line{Time: now, Kind: "Machine", Name: m.Name, To: r.phase, Message: r.says}
	if known && before.phase != r.phase {
		line.From = before.phase
	}
	return f.shown(m, line)
}

func (f *Fleet) shown(m *v1alpha1.Machine, line Line) []Line {
	line.Pool = f.poolOf(m)
	if len(f.only) > 0 && !slices.Contains(f.only, line.Pool) {
		return nil
	}
	return []Line{line}
}

// poolOf is the name of the pool that selects a machine, "" for none; of several the first: both refuse anyway.
func (f *Fleet) poolOf(m *v1alpha1.Machine) string {
	found := ""
	for name, selector := range f.selectors {
		if selector.Matches(labels.Set(m.Labels)) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

func (f *Fleet) pool(d *v1alpha1.MachineDeployment, c Change, now time.Time) []Line {
	before, known := f.pools[d.Name]
	line := Line{Time: now, Kind: "MachineDeployment", Name: d.Name, To: "Deleted"}
	if c.Deleted {
		delete(f.pools, d.Name)
		delete(f.selectors, d.Name)
	} else {
		selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
		if err != nil {
			selector = labels.Nothing()
		}
		f.pools[d.Name], f.selectors[d.Name] = d, selector
		line.To, line.Message = told(d)
		if known {
			from, message := told(before)
			if from == line.To && message == line.Message {
				return nil
			}
			line.From = from
		}
	}
	if len(f.only) > 0 && !slices.Contains(f.only, d.Name) {
		return nil
	}
	return []Line{line}
}

func told(d *v1alpha1.MachineDeployment) (state, message string) {
	s := d.Status
	_, message = verdictOf(d)
	return fmt.Sprintf("%d/%d up to date, %d in flight, %d failed", s.UpToDate, s.Machines, s.InFlight, s.Failed), message
}

func (f *Fleet) ledger(l *v1alpha1.Ledger, c Change, now time.Time) []Line {
	was := f.stopped
	touched := f.slots
	f.slots, f.stopped = map[string]*v1alpha1.Slot{}, false
	if !c.Deleted {
		f.stopped = l.Spec.Stopped
		for i := range l.Spec.Slots {
			f.slots[l.Spec.Slots[i].Machine] = &l.Spec.Slots[i]
		}
	}
	for _, slots := range []map[string]*v1alpha1.Slot{touched, f.slots} {
		for name := range slots {
			if r, known := f.machines[name]; known {
				r.class = classOf(r.machine, f.slots[name] != nil)
				f.machines[name] = r
				f.order.move(name)
			}
		}
	}
	if f.stopped == was {
		return nil
	}
	return []Line{{Time: now, Kind: "Ledger", Name: l.Name, To: map[bool]string{true: "Stopped", false: "NotStopped"}[f.stopped]}}
}

// event is one of a Machine or a pool. Those that stood there already are told too: they say how it came to this.
func (f *Fleet) event(e *corev1.Event, c Change) []Line {
	about := e.InvolvedObject
	if c.Deleted || about.Kind != "Machine" && about.Kind != "MachineDeployment" {
		return nil
	}
	line := Line{Time: eventTime(e), Kind: about.Kind, Name: clean(about.Name), To: clean(e.Reason), Message: clean(e.Message)}
	if about.Kind == "Machine" {
		if m, known := f.machines[about.Name]; known {
			return f.shown(m.machine, line)
		}
	}
	if len(f.only) > 0 && (about.Kind == "Machine" || !slices.Contains(f.only, about.Name)) {
		return nil
	}
	return []Line{line}
}

func eventTime(e *corev1.Event) time.Time {
	if s := e.Series; s != nil {
		return s.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

// table is the machines in the order in which they are shown, and the pools with what their machines make of them.
func (f *Fleet) table(now time.Time) ([]row, []pool) {
	rows := make([]row, 0, len(f.machines))
	members := map[string][]row{}
	for _, name := range f.order.of(f.machines) {
		r := f.machines[name]
		in := f.poolOf(r.machine)
		if len(f.only) > 0 && !slices.Contains(f.only, in) {
			continue
		}
		rows = append(rows, r)
		if in != "" {
			members[in] = append(members[in], r)
		}
	}
	var pools []pool
	for name, d := range f.pools {
		if len(f.only) == 0 || slices.Contains(f.only, name) {
			pools = append(pools, poolOf(d, members[name], f.slots, now))
		}
	}
	slices.SortFunc(pools, func(a, b pool) int { return strings.Compare(a.name, b.name) })
	return rows, pools
}

// natural orders worker-9 before worker-10.
func natural(a, b string) int {
	digits := func(s string) int {
		return len(s) - len(strings.TrimLeft(s, "0123456789"))
	}
	for a != "" && b != "" {
		i, j := digits(a), digits(b)
		if i > 0 && j > 0 {
			x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[i:], b[j:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}
