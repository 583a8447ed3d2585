package fleet

import (
	"fmt"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Tally counts some machines of one reading once, for all who ask: where very many wait for
// the same budget, each would count all others. A slot that is given on that reading makes
// it count again.
type Tally struct {
	machines []*Machine
	has      func(*Machine) bool
	given    *int // slots on the reading
	counted  bool
	upTo     int // as many slots were given when it was counted

	away, busy, disrupting []*Machine
	serving                int
	words                  kept[Words]
}

// Len is how many machines there are.
func (t *Tally) Len() int { return len(t.machines) }

// Has says whether the machine is one of them.
func (t *Tally) Has(m *Machine) bool { return t.has(m) }

// AwayBut are those that do not serve, but for one.
func (t *Tally) AwayBut(m *Machine) []*Machine { return but(t.fresh().away, m) }

// BusyBut are those in a slot, but for one.
func (t *Tally) BusyBut(m *Machine) []*Machine { return but(t.fresh().busy, m) }

// ServingBut is how many others serve.
func (t *Tally) ServingBut(m *Machine) int {
	n := t.fresh().serving
	if t.has(m) && m.Serves() {
		n--
	}
	return n
}

// DisruptingBut is how many others are in a slot that takes pods away from them.
func (t *Tally) DisruptingBut(m *Machine) int { return len(but(t.fresh().disrupting, m)) }

// but leaves one machine out; where it is not among them, what it returns is shared.
func but(machines []*Machine, m *Machine) []*Machine {
	for i := range machines {
		if machines[i] == m {
			return append(append([]*Machine{}, machines[:i]...), machines[i+1:]...)
		}
	}
	return machines
}

// Words are what is said of machines that do not serve: of those that stay away, and of
// those that are away for the moment.
type Words struct{ Lasting, Moment string }

// WordsBut is what is said of those that do not serve, but for one: once for all machines
// that wait for them.
func (t *Tally) WordsBut(m *Machine, say func(away []*Machine) Words) Words {
	if away := t.fresh().away; slices.Contains(away, m) {
		return say(but(away, m))
	}
	return t.words.or(func() Words { return say(t.away) })
}

// fresh counts anew where a slot was given since.
func (t *Tally) fresh() *Tally {
	if !t.counted || t.given != nil && t.upTo != *t.given {
		t.count()
	}
	return t
}

func (t *Tally) count() {
	t.away, t.busy, t.disrupting, t.serving, t.words = nil, nil, nil, 0, kept[Words]{}
	t.counted = true
	if t.given != nil {
		t.upTo = *t.given
	}
	for _, m := range t.machines {
		if m.Unavailable() != "" {
			t.away = append(t.away, m)
		}
		if m.Slot != nil {
			t.busy = append(t.busy, m)
		}
		if m.Serves() {
			t.serving++
		}
		if m.Slot != nil && !m.StandsBy() && Disrupts(m.Slot.Disruption) {
			t.disrupting = append(t.disrupting, m)
		}
	}
}

// Tally of the pool's machines.
func (p *Pool) Tally() *Tally {
	if p.tally == nil {
		p.tally = &Tally{machines: p.Machines, has: func(m *Machine) bool { return m.Pool == p }, given: p.given}
	}
	return p.tally
}

// Covered are the machines that the budget counts: those that stand by are neither
// available nor missed.
func (f *Fleet) Covered(b *v1alpha1.MachineDisruptionBudget) (*Tally, error) {
	if known := f.covered[b]; known != nil {
		return known, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(&b.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("parsing its selector: %w", err)
	}
	var covered []*Machine
	in := map[*Machine]bool{}
	for _, m := range f.Machines {
		if !m.OutOfService() && !m.StandsBy() && sel.Matches(labels.Set(m.Labels)) {
			covered, in[m] = append(covered, m), true
		}
	}
	if f.covered == nil {
		f.covered = map[*v1alpha1.MachineDisruptionBudget]*Tally{}
	}
	f.covered[b] = &Tally{machines: covered, has: func(m *Machine) bool { return in[m] }, given: f.given}
	return f.covered[b], nil
}

// Members are the machines of the control plane and of etcd.
func (f *Fleet) Members() []*Machine {
	if f.members == nil {
		f.members = []*Machine{}
		for _, m := range f.Machines {
			if m.HasRole(v1alpha1.RoleControlPlane) || m.HasRole(v1alpha1.RoleEtcd) {
				f.members = append(f.members, m)
			}
		}
	}
	return f.members
}
