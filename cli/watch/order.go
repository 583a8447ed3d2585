package watch

import (
	"cmp"
	"slices"
)

// manyMoved is from how many machines on the order is made anew: to sort is cheaper then than to move each.
const manyMoved = 64

// order is the machines by name, in the order in which they are shown. Of very many, few change
// from one frame to the next: only those are looked for a new place.
type order struct {
	names []string
	moved map[string]bool
	known bool
}

// move says that a machine is another than it was, or gone.
func (o *order) move(name string) {
	if o.moved == nil {
		o.moved = map[string]bool{}
	}
	o.moved[name] = true
}

// of is the order of these machines.
func (o *order) of(machines map[string]row) []string {
	before := func(a, b string) int {
		return cmp.Or(cmp.Compare(machines[a].class, machines[b].class), natural(a, b), cmp.Compare(a, b))
	}
	if !o.known || len(o.moved) > manyMoved {
		o.names = make([]string, 0, len(machines))
		for name := range machines {
			o.names = append(o.names, name)
		}
		slices.SortFunc(o.names, before)
	} else if len(o.moved) > 0 {
		o.names = slices.DeleteFunc(o.names, func(name string) bool { return o.moved[name] })
		for name := range o.moved {
			if _, there := machines[name]; there {
				at, _ := slices.BinarySearchFunc(o.names, name, before)
				o.names = slices.Insert(o.names, at, name)
			}
		}
	}
	o.known, o.moved = true, nil
	return o.names
}
