package gates

import (
	"github.com/refit-dev/refit/coordinator/fleet"
)

// controlPlaneFirst judges the hop again by the API servers as they are observed now:
// the plan was made on an earlier reading.
func controlPlaneFirst(f *fleet.Fleet, m *fleet.Machine) *Verdict {
	a := m.Status.Assignment
	if a == nil {
		return nil
	}
	if blocked := f.View().Allowed(f.State(m.Name), a.Target); blocked != nil {
		return &Verdict{Reason: blocked.Reason, Message: blocked.Message}
	}
	return nil
}
