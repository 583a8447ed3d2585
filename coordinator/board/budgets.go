package board

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// SetBudgets replaces what the budgets of a namespace allow, by name.
func (b *Board) SetBudgets(namespace string, now map[string]v1alpha1.MachineDisruptionBudgetStatus) {
	b.mu.Lock()
	old := b.budgets[namespace]
	if b.budgets == nil {
		b.budgets = map[string]map[string]v1alpha1.MachineDisruptionBudgetStatus{}
	}
	b.budgets[namespace] = now
	if len(now) == 0 {
		delete(b.budgets, namespace)
	}
	b.mu.Unlock()
	if b.BudgetChanged == nil {
		return
	}
	for name, st := range now {
		if was, known := old[name]; !known || !equality.Semantic.DeepEqual(was, st) {
			b.BudgetChanged(types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
}

// Budget is what a budget allows; false before its namespace was judged.
func (b *Board) Budget(key types.NamespacedName) (v1alpha1.MachineDisruptionBudgetStatus, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st, known := b.budgets[key.Namespace][key.Name]
	return st, known
}
