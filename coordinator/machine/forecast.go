package machine

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Forecasts is what is foreseen of drains.
type Forecasts interface {
	Known(machine types.NamespacedName, generation int64) (fleet.Forecast, bool)
}

// foreseen tells of the drain of a machine that waits for one.
func (r *Reconciler) foreseen(s *scope) *metav1.Condition {
	if s.slot() != nil || s.wishMet || s.machine.Spec.Availability == v1alpha1.AvailabilityOutOfService || !fleet.NeedsDrain(s.view) {
		return nil
	}
	f, known := r.Forecasts.Known(s.key, s.machine.Generation)
	if !known {
		return nil
	}
	return ptr(status.DrainForecast(f.Status, f.Reason, f.Message))
}
