package gates

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// manual lets only those machines go that the operator has named, for their spec as it is.
func manual(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if !m.Pool.Manual() || m.Named() {
		return nil
	}
	message := fmt.Sprintf("spec.strategy.type of %s is Manual: the operator names the next machine; this one with: %s",
		poolName(m.Pool), status.NextCommand(m.Machine))
	if value, set := m.Annotations[v1alpha1.AnnotationNext]; set {
		message += fmt.Sprintf(" (its annotation is for generation %q of its spec)", value)
	}
	return &Verdict{Reason: ReasonAwaitingNext, Message: message}
}
