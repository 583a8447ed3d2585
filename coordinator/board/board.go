// Package board is where the coordinator's controllers leave word for one another: the
// verdict of the gates and the overridden fields of each machine. It is memory only;
// after a restart it fills again as the controllers look at each object once.
package board

import (
	"slices"
	"sync"

	"github.com/refit-dev/refit/coordinator/gates"
	"k8s.io/apimachinery/pkg/types"
)

// Override is a templated field that another manager owns.
type Override struct{ Field, Manager string }

// Board is safe for concurrent use. The zero value is ready.
type Board struct {
	// Changed is told which machine has new word. It must not block for long.
	Changed func(types.NamespacedName)

	mu        sync.Mutex
	verdicts  map[types.NamespacedName]gates.Verdict
	overrides map[types.NamespacedName][]Override
}

// SetVerdicts replaces the verdicts of a namespace.
func (b *Board) SetVerdicts(namespace string, verdicts map[string]gates.Verdict) {
	b.mu.Lock()
	next := map[types.NamespacedName]gates.Verdict{}
	var changed []types.NamespacedName
	for key, v := range b.verdicts {
		if key.Namespace != namespace {
			next[key] = v
		} else if _, still := verdicts[key.Name]; !still {
			changed = append(changed, key)
		}
	}
	for name, v := range verdicts {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if old, had := b.verdicts[key]; !had || old != v {
			changed = append(changed, key)
		}
		next[key] = v
	}
	b.verdicts = next
	b.mu.Unlock()
	b.tell(changed)
}

// Verdict of the machine; false when no gate holds it.
func (b *Board) Verdict(machine types.NamespacedName) (gates.Verdict, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.verdicts[machine]
	return v, ok
}

// SetOverrides replaces the overridden fields of a machine.
func (b *Board) SetOverrides(machine types.NamespacedName, overrides []Override) {
	b.mu.Lock()
	if slices.Equal(b.overrides[machine], overrides) {
		b.mu.Unlock()
		return
	}
	if b.overrides == nil {
		b.overrides = map[types.NamespacedName][]Override{}
	}
	b.overrides[machine] = overrides
	if len(overrides) == 0 {
		delete(b.overrides, machine)
	}
	b.mu.Unlock()
	b.tell([]types.NamespacedName{machine})
}

// Overrides of the machine.
func (b *Board) Overrides(machine types.NamespacedName) []Override {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.overrides[machine])
}

func (b *Board) tell(machines []types.NamespacedName) {
	if b.Changed == nil {
		return
	}
	for _, m := range machines {
		b.Changed(m)
	}
}
