package verbs

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/pkg/usage"
)

// Kind is what a name on the command line may mean.
type Kind string

// The kinds that verbs are about.
const (
	Pool    Kind = "MachineDeployment"
	Machine Kind = "Machine"
)

// prefixes are what may stand before a name, as kubectl has it.
var prefixes = map[string]Kind{
	"machinedeployment": Pool, "machinedeployments": Pool, "machd": Pool, "md": Pool,
	"machine": Machine, "machines": Machine, "mach": Machine,
}

// Select finds what is named, each once. A name without a prefix means one of the bare kinds,
// and one with a prefix one of those or of the others.
func (n *Namespace) Select(names []string, bare []Kind, others ...Kind) ([]client.Object, error) {
	var out []client.Object
	for _, name := range names {
		kinds, name, err := parse(name, bare, others)
		if err != nil {
			return nil, err
		}
		found, err := n.find(name, kinds)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, found) {
			out = append(out, found)
		}
	}
	return out, nil
}

func parse(name string, bare, others []Kind) ([]Kind, string, error) {
	prefix, rest, prefixed := strings.Cut(name, "/")
	if !prefixed {
		return bare, name, nil
	}
	word, _, _ := strings.Cut(strings.ToLower(prefix), ".") // machine.refit.dev, as -o name has it
	kind, known := prefixes[word]
	if !known || !slices.Contains(append(slices.Clone(bare), others...), kind) {
		var allowed []string
		for _, k := range append(slices.Clone(bare), others...) {
			allowed = append(allowed, strings.ToLower(string(k))+"/NAME")
		}
		return nil, "", usage.Errorf("%q cannot be meant here: it is NAME or %s", name, strings.Join(allowed, " or "))
	}
	return []Kind{kind}, rest, nil
}

func (n *Namespace) find(name string, kinds []Kind) (client.Object, error) {
	var found []client.Object
	for _, kind := range kinds {
		if o := n.get(kind, name); o != nil {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, n.missing(name, kinds)
	}
	return nil, usage.Errorf("%s is the name of a machine and of a pool: write machine/%s or machinedeployment/%s", name, name, name)
}

func (n *Namespace) get(kind Kind, name string) client.Object {
	if kind == Pool {
		for i := range n.Pools {
			if n.Pools[i].Name == name {
				return &n.Pools[i]
			}
		}
		return nil
	}
	for i := range n.Machines {
		if n.Machines[i].Name == name {
			return &n.Machines[i]
		}
	}
	return nil
}

// missing says what there is instead.
func (n *Namespace) missing(name string, kinds []Kind) error {
	var words, there []string
	for _, kind := range kinds {
		words = append(words, string(kind))
		there = append(there, fmt.Sprintf("the %ss are %s", kind, listed(n.Names(kind))))
	}
	return usage.Errorf("there is no %s %q in namespace %s: %s (-n names another namespace)", strings.Join(words, " or "), name, n.Name, strings.Join(there, ", "))
}

// Names are all names of a kind, in order.
func (n *Namespace) Names(kind Kind) []string {
	var out []string
	if kind == Pool {
		for i := range n.Pools {
			out = append(out, n.Pools[i].Name)
		}
	} else {
		for i := range n.Machines {
			out = append(out, n.Machines[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

func listed(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
