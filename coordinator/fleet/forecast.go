package fleet

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Forecast is what is foreseen of a machine's drain: True, False (it can never succeed as
// things are) or Unknown.
type Forecast struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Impossible says that the drain can never succeed as things are.
func (f *Forecast) Impossible() bool { return f != nil && f.Status == metav1.ConditionFalse }

// DrainImpossible says that the machine needs a drain that can never succeed as things are.
func (m *Machine) DrainImpossible() bool { return m.Forecast.Impossible() && NeedsDrain(m) }

// NeedsDrain says that the plan of a machine takes pods off its node.
func NeedsDrain(m *Machine) bool {
	plan := FrozenPlan(m.Machine)
	return plan != nil && Disrupts(plan.Disruption) && m.Node != nil
}
