// Package board is where the coordinator's controllers leave word for one another: the
// verdict of the gates, a violated skew, the role and the overridden fields of each machine. It is
// memory only; after a restart it fills again as the controllers look at each object once.
package board

import (
	"slices"
	"sync"

	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/standby"
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
	halts     map[types.NamespacedName]gates.Verdict
	overrides map[types.NamespacedName][]Override
	skews     map[types.NamespacedName]string
	roles     map[types.NamespacedName]standby.Role
	// judged are the namespaces whose skews are known.
	judged map[string]bool
}

// SetVerdicts replaces the verdicts of a namespace.
func (b *Board) SetVerdicts(namespace string, verdicts map[string]gates.Verdict) {
	b.mu.Lock()
	next, changed := replaced(b.verdicts, namespace, verdicts)
	b.verdicts = next
	b.mu.Unlock()
	b.tell(changed)
}

// SetHalts replaces why the rollouts that paused themselves want slots back, for the machines
// of a namespace that hold one.
func (b *Board) SetHalts(namespace string, halts map[string]gates.Verdict) {
	b.mu.Lock()
	next, changed := replaced(b.halts, namespace, halts)
	b.halts = next
	b.mu.Unlock()
	b.tell(changed)
}

// Halt is why the machine's slot is wanted back before it has its grant; nil when it is not.
func (b *Board) Halt(machine types.NamespacedName) *gates.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, halted := b.halts[machine]; halted {
		return &v
	}
	return nil
}

// SetSkews replaces what is said of the machines of a namespace whose kubelets are
// outside of their skew; the others are within it, or not known.
func (b *Board) SetSkews(namespace string, skews map[string]string) {
	b.mu.Lock()
	next, changed := replaced(b.skews, namespace, skews)
	if b.judged == nil {
		b.judged = map[string]bool{}
	}
	b.skews, b.judged[namespace] = next, true
	b.mu.Unlock()
	b.tell(changed)
}

// SetRoles replaces the roles of the machines of a namespace for which that is a question.
func (b *Board) SetRoles(namespace string, roles map[string]standby.Role) {
	b.mu.Lock()
	next, changed := replaced(b.roles, namespace, roles)
	b.roles = next
	b.mu.Unlock()
	b.tell(changed)
}

// Role of the machine; false where nobody has asked, or before its namespace was judged.
func (b *Board) Role(machine types.NamespacedName) (standby.Role, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.roles[machine]
	return r, ok
}

// Skew is what is said of a machine whose kubelet is outside of its skew, "" of any other;
// false before its namespace was judged.
func (b *Board) Skew(machine types.NamespacedName) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.skews[machine], b.judged[machine.Namespace]
}

// replaced is old with the entries of a namespace replaced, and the machines for which that is news.
func replaced[V comparable](old map[types.NamespacedName]V, namespace string, now map[string]V) (map[types.NamespacedName]V, []types.NamespacedName) {
	next := map[types.NamespacedName]V{}
	var changed []types.NamespacedName
	for key, v := range old {
		if key.Namespace != namespace {
			next[key] = v
		} else if _, still := now[key.Name]; !still {
			changed = append(changed, key)
		}
	}
	for name, v := range now {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if was, had := old[key]; !had || was != v {
			changed = append(changed, key)
		}
		next[key] = v
	}
	return next, changed
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
