package gates

import (
	"fmt"
	"slices"

	"github.com/refit-dev/refit/coordinator/fleet"
)

// canary lets the canaries go first, and nobody else before all of them are through: up to
// date, well, and soaked. One that failed stops the others whatever the pool bears later.
// A standby that is to take over for them is upgraded before, while none has failed.
func canary(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if !m.HasCanaries() {
		return nil
	}
	if !m.Pool.TemplateWritten() {
		return &Verdict{Reason: ReasonCanaryPending, Message: fmt.Sprintf("the template of %s is not in all of its machines yet, and its canaries are not known before", poolName(m.Pool))}
	}
	canaries := m.CanariesBefore()
	switch {
	case len(canaries.Failed) > 0:
		return &Verdict{Reason: ReasonCanaryFailed, Message: fmt.Sprintf(
			"a canary of %s failed, and nothing else is begun: %s; see to it, then change the spec or retry it, or set it to OutOfService for another one",
			poolName(m.Pool), listed(failures(canaries.Failed)))}
	case len(canaries.Open) == 0 || canaries.Is(m) || (m.StandsBy() && m.Pool.MaxSurge() > 0):
		return nil
	}
	return &Verdict{Reason: ReasonCanaryPending, Message: fmt.Sprintf("the canaries of %s go first, alone", poolName(m.Pool)), Moment: momentary(listed(stages(canaries.Open)))}
}

func failures(machines []*fleet.Machine) []string {
	out := make([]string, 0, len(machines))
	for _, m := range machines {
		out = append(out, fmt.Sprintf("%s (%s)", m.Name, m.Status.RolloutFailure.Reason))
	}
	return out
}

// stages are the machines, and why each is not through.
func stages(machines []*fleet.Machine) []string {
	out := make([]string, 0, len(machines))
	for _, m := range machines {
		why := string(m.Status.Phase)
		if down := m.Down(); down != "" && m.Slot == nil {
			why = down
		}
		if why == "" {
			why = "not begun"
		}
		out = append(out, fmt.Sprintf("%s (%s)", m.Name, why))
	}
	return out
}

// CanaryHalts says that a failed canary holds the rest of the pool.
func CanaryHalts(p *fleet.Pool) bool {
	return slices.ContainsFunc(p.Machines, func(m *fleet.Machine) bool {
		return m.HasCanaries() && !m.UpToDate() && p.TemplateWritten() && len(m.CanariesBefore().Failed) > 0
	})
}
