package dashboard

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Fleet is what is known of a namespace. It keeps the objects that it is given, and changes none.
type Fleet struct {
	topologyKey string
	machines    map[string]*v1alpha1.Machine
	domains     map[string]string // by Node
	pools       map[string]*v1alpha1.MachineDeployment
	selectors   map[string]labels.Selector
	slots       map[string]v1alpha1.Slot
	stopped     bool
}

// Touched is what a change may show in.
type Touched struct {
	// Machines whose rows may have become others.
	Machines []string
	// Summary says that the pools' numbers may have.
	Summary bool
}

// NewFleet is one of which nothing is known; topologyKey is the label of Nodes that names their domain.
func NewFleet(topologyKey string) *Fleet {
	return &Fleet{
		topologyKey: topologyKey,
		machines:    map[string]*v1alpha1.Machine{}, domains: map[string]string{},
		pools: map[string]*v1alpha1.MachineDeployment{}, selectors: map[string]labels.Selector{}, slots: map[string]v1alpha1.Slot{},
	}
}

// Put takes an object as it is now.
func (f *Fleet) Put(o client.Object) Touched {
	name := o.GetName()
	switch o := o.(type) {
	case *v1alpha1.Machine:
		_, known := f.machines[name]
		f.machines[name] = o
		return Touched{Machines: []string{name}, Summary: !known}
	case *corev1.Node:
		return f.place(name, o.Labels[f.topologyKey])
	case *v1alpha1.MachineDeployment:
		return f.putPool(o)
	case *v1alpha1.Ledger:
		if name == v1alpha1.LedgerName {
			return f.putLedger(o.Spec)
		}
	}
	return Touched{}
}

// Remove takes an object away.
func (f *Fleet) Remove(o client.Object) Touched {
	name := o.GetName()
	switch o.(type) {
	case *v1alpha1.Machine:
		delete(f.machines, name)
		return Touched{Machines: []string{name}, Summary: true}
	case *corev1.Node:
		return f.place(name, "")
	case *v1alpha1.MachineDeployment:
		delete(f.pools, name)
		delete(f.selectors, name)
		return f.all()
	case *v1alpha1.Ledger:
		if name == v1alpha1.LedgerName {
			return f.putLedger(v1alpha1.LedgerSpec{})
		}
	}
	return Touched{}
}

func (f *Fleet) place(node, domain string) Touched {
	if f.domains[node] == domain {
		return Touched{} // a Node's heartbeat
	}
	f.domains[node] = domain
	if domain == "" {
		delete(f.domains, node)
	}
	return Touched{Machines: []string{node}}
}

// putPool touches the machines only where it selects others than before: its numbers change with every step of a rollout.
func (f *Fleet) putPool(d *v1alpha1.MachineDeployment) Touched {
	f.pools[d.Name] = d
	selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // the API server takes none that is wrong
	}
	before := f.selectors[d.Name]
	f.selectors[d.Name] = selector
	if before != nil && before.String() == selector.String() {
		return Touched{Summary: true}
	}
	return f.all()
}

func (f *Fleet) putLedger(l v1alpha1.LedgerSpec) Touched {
	t := Touched{Summary: f.stopped != l.Stopped}
	f.stopped = l.Stopped
	before := f.slots
	f.slots = make(map[string]v1alpha1.Slot, len(l.Slots))
	for _, s := range l.Slots {
		f.slots[s.Machine] = s
		t.Machines = append(t.Machines, s.Machine)
	}
	for name := range before {
		if _, still := f.slots[name]; !still {
			t.Machines = append(t.Machines, name)
		}
	}
	return t
}

func (f *Fleet) all() Touched {
	return Touched{Machines: slices.Collect(maps.Keys(f.machines)), Summary: true}
}

// poolOf is the pool of a machine; several, where they conflict, are all named.
func (f *Fleet) poolOf(m *v1alpha1.Machine) string {
	var names []string
	for name, selector := range f.selectors {
		if selector.Matches(labels.Set(m.Labels)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
