package fleet

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Tally counts some machines of one reading once, for all who ask: where very many wait for
// the same budget, each would count all others. A slot that is given on that reading makes
// it count again.
type Tally struct {
	machines []*Machine
	in       map[*Machine]bool
	slots    []*v1alpha1.Slot // of machines, when it was counted; nil before

	away, busy, disrupting, serving []*Machine
}

func newTally(machines []*Machine) *Tally {
	t := &Tally{machines: machines, in: make(map[*Machine]bool, len(machines))}
	for _, m := range machines {
		t.in[m] = true
	}
	return t
}

// Len is how many machines there are.
func (t *Tally) Len() int { return len(t.machines) }

// Has says whether the machine is one of them.
func (t *Tally) Has(m *Machine) bool { return t.in[m] }

// AwayBut are those that do not serve, but for one.
func (t *Tally) AwayBut(m *Machine) []*Machine { return but(t.counted().away, m) }

// BusyBut are those in a slot, but for one.
func (t *Tally) BusyBut(m *Machine) []*Machine { return but(t.counted().busy, m) }

// ServingBut is how many others serve.
func (t *Tally) ServingBut(m *Machine) int {
	n := len(t.counted().serving)
	if t.in[m] && m.Serves() {
		n--
	}
	return n
}

// DisruptingBut is how many others are in a slot that takes pods away from them.
func (t *Tally) DisruptingBut(m *Machine) int { return len(but(t.counted().disrupting, m)) }

// but leaves one machine out; where it is not among them, what it returns is shared.
func but(machines []*Machine, m *Machine) []*Machine {
	for i := range machines {
		if machines[i] == m {
			return append(append([]*Machine{}, machines[:i]...), machines[i+1:]...)
		}
	}
	return machines
}

func (t *Tally) counted() *Tally {
	if !t.fresh() {
		t.count()
	}
	return t
}

// fresh says that no slot was given or taken since it was counted.
func (t *Tally) fresh() bool {
	if t.slots == nil {
		return false
	}
	for i, m := range t.machines {
		if m.Slot != t.slots[i] {
			return false
		}
	}
	return true
}

func (t *Tally) count() {
	t.away, t.busy, t.disrupting, t.serving = nil, nil, nil, nil
	t.slots = make([]*v1alpha1.Slot, len(t.machines))
	for i, m := range t.machines {
		t.slots[i] = m.Slot
		if m.Unavailable() != "" {
			t.away = append(t.away, m)
		}
		if m.Slot != nil {
			t.busy = append(t.busy, m)
		}
		if m.Serves() {
			t.serving = append(t.serving, m)
		}
		if m.Slot != nil && !m.StandsBy() && Disrupts(m.Slot.Disruption) {
			t.disrupting = append(t.disrupting, m)
		}
	}
}

// Tally of the pool's machines.
func (p *Pool) Tally() *Tally {
	if p.tally == nil {
		p.tally = newTally(p.Machines)
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
	for _, m := range f.Machines {
		if !m.OutOfService() && !m.StandsBy() && sel.Matches(labels.Set(m.Labels)) {
			covered = append(covered, m)
		}
	}
	if f.covered == nil {
		f.covered = map[*v1alpha1.MachineDisruptionBudget]*Tally{}
	}
	f.covered[b] = newTally(covered)
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
