package status

import (
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage keeps a Machine small; the schema's own bound is far greater.
const maxMessage = 1024

// Set puts a condition of the catalogue in place, for the generation and at the time it
// was judged. It says whether status or reason changed: the moment for an event.
func Set(conditions *[]metav1.Condition, generation int64, now time.Time, c metav1.Condition) bool {
	old := meta.FindStatusCondition(*conditions, c.Type)
	changed := old == nil || old.Status != c.Status || old.Reason != c.Reason
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now) // kept where the status stays
	if len(c.Message) > maxMessage {
		c.Message = c.Message[:maxMessage-3] + "..."
	}
	meta.SetStatusCondition(conditions, c)
	return changed
}

// Clear removes a condition: an abnormal-true condition that does not hold is absent.
func Clear(conditions *[]metav1.Condition, kind string) { meta.RemoveStatusCondition(conditions, kind) }

// OfCoordinator are the conditions that the coordinator writes.
func OfCoordinator(conditions []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range conditions {
		if !slices.Contains(v1alpha1.AgentConditions, c.Type) {
			out = append(out, c)
		}
	}
	return out
}
