// Package board is where the coordinator's controllers leave word for one another: the
// verdict of the gates, a violated skew, the role and the overridden fields of each machine. It is
// memory only; after a restart it fills again as the controllers look at each object once.
package board

import (
	"maps"
	"slices"
	"sync"

	"github.com/refit-dev/refit/api/v1alpha1"
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
	// BudgetChanged is told which MachineDisruptionBudget allows something else now. It must not block for long.
	BudgetChanged func(types.NamespacedName)

	mu        sync.Mutex
	verdicts  words[gates.Verdict]
	halts     words[gates.Verdict]
	overrides map[types.NamespacedName][]Override
	skews     words[string]
	roles     words[standby.Role]
	budgets   map[string]map[string]v1alpha1.MachineDisruptionBudgetStatus // by namespace and name
	// judged are the namespaces whose skews are known.
	judged map[string]bool
}

// SetVerdicts replaces the verdicts of a namespace. That one pass did not get as far as a
// machine that waited for room is no news: that it waits for room stays said until there is
// an answer. What is set below is the board's from then on.
func (b *Board) SetVerdicts(namespace string, verdicts map[string]gates.Verdict) {
	b.mu.Lock()
	verdicts = maps.Clone(verdicts)
	for name, v := range verdicts {
		was := b.verdicts[namespace][name]
		if v.Reason == gates.ReasonForecastPending && was.Reason == gates.ReasonBudgetExhausted {
			verdicts[name] = was
		}
	}
	changed := b.verdicts.replace(namespace, verdicts, gates.Verdict.Says)
	b.mu.Unlock()
	b.tell(changed)
}

// SetHalts replaces why the rollouts that paused themselves want slots back, for the machines
// of a namespace that hold one.
func (b *Board) SetHalts(namespace string, halts map[string]gates.Verdict) {
	b.mu.Lock()
	changed := b.halts.replace(namespace, halts, gates.Verdict.Says)
	b.mu.Unlock()
	b.tell(changed)
}

// Halt is why the machine's slot is wanted back before it has its grant; nil when it is not.
func (b *Board) Halt(machine types.NamespacedName) *gates.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, halted := b.halts.of(machine); halted {
		return &v
	}
	return nil
}

// SetSkews replaces what is said of the machines of a namespace whose kubelets are
// outside of their skew; the others are within it, or not known.
func (b *Board) SetSkews(namespace string, skews map[string]string) {
	b.mu.Lock()
	changed := b.skews.replace(namespace, skews, equal[string])
	if b.judged == nil {
		b.judged = map[string]bool{}
	}
	b.judged[namespace] = true
	b.mu.Unlock()
	b.tell(changed)
}

// SetRoles replaces the roles of the machines of a namespace for which that is a question.
func (b *Board) SetRoles(namespace string, roles map[string]standby.Role) {
	b.mu.Lock()
	changed := b.roles.replace(namespace, roles, equal[standby.Role])
	b.mu.Unlock()
	b.tell(changed)
}

// Role of the machine; false where nobody has asked, or before its namespace was judged.
func (b *Board) Role(machine types.NamespacedName) (standby.Role, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.roles.of(machine)
}

// Skew is what is said of a machine whose kubelet is outside of its skew, "" of any other;
// false before its namespace was judged.
func (b *Board) Skew(machine types.NamespacedName) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, _ := b.skews.of(machine)
	return text, b.judged[machine.Namespace]
}

func equal[V comparable](a, b V) bool { return a == b }

// news are the machines of a namespace of which now says something else than old.
func news[V comparable](namespace string, old, now map[string]V, same func(a, b V) bool) []types.NamespacedName {
	var changed []types.NamespacedName
	for name := range old {
		if _, still := now[name]; !still {
			changed = append(changed, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	for name, v := range now {
		if was, had := old[name]; !had || !same(was, v) {
			changed = append(changed, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return changed
}

// words are those of each namespace, by machine. A namespace's are replaced and never changed.
type words[V comparable] map[string]map[string]V

func (w *words[V]) replace(namespace string, now map[string]V, same func(a, b V) bool) []types.NamespacedName {
	if *w == nil {
		*w = words[V]{}
	}
	changed := news(namespace, (*w)[namespace], now, same)
	(*w)[namespace] = now
	if len(now) == 0 {
		delete(*w, namespace)
	}
	return changed
}

func (w words[V]) of(machine types.NamespacedName) (V, bool) {
	v, known := w[machine.Namespace][machine.Name]
	return v, known
}

// Verdict of the machine; false when no gate holds it.
func (b *Board) Verdict(machine types.NamespacedName) (gates.Verdict, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.verdicts.of(machine)
}

// SetOverrides replaces the overridden fields of a machine.
func (b *Board) SetOverrides(machine types.NamespacedName, overrides []Override) {
	b.mu.Lock()
	if was, looked := b.overrides[machine]; looked && slices.Equal(was, overrides) {
		b.mu.Unlock()
		return
	}
	if b.overrides == nil {
		b.overrides = map[types.NamespacedName][]Override{}
	}
	b.overrides[machine] = overrides
	b.mu.Unlock()
	b.tell([]types.NamespacedName{machine})
}

// Overrides of the machine; false before its template was compared with it.
func (b *Board) Overrides(machine types.NamespacedName) ([]Override, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	overrides, looked := b.overrides[machine]
	return slices.Clone(overrides), looked
}

func (b *Board) tell(machines []types.NamespacedName) {
	if b.Changed == nil {
		return
	}
	for _, m := range machines {
		b.Changed(m)
	}
}
