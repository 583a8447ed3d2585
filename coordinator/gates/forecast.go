package gates

import (
	"fmt"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// forecast keeps a machine from being drained in vain: each try would evict the other
// pods before it ends. What is not known yet is asked when everything else lets it go.
func forecast(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if !m.DrainImpossible() {
		return nil
	}
	return &Verdict{Reason: ReasonDrainImpossible, Message: fmt.Sprintf(
		"its drain can never succeed as things are (%s): %s", m.Forecast.Reason, m.Forecast.Message)}
}
