package steps

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// StoppedUnit is the unit that a StopSandboxes step stops.
func StoppedUnit(s upgrade.Step) string {
	if s.Unit == "" {
		return KubeletUnit
	}
	return s.Unit
}

// stopSandboxes leaves no container of the old runtime behind. The kubelet is stopped
// first, or it would start the static pods again at once; a later step of the plan, or
// of the rollback, starts it.
func stopSandboxes(ctx context.Context, r Run) (string, error) {
	unit := StoppedUnit(r.Step)
	active, err := r.Host.Units.Active(ctx, unit)
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", unit, err)
	}
	if active {
		if err := r.Host.Units.Stop(ctx, unit); err != nil {
			return "", fmt.Errorf("stopping %s: %w", unit, err)
		}
	}
	total := 0
	err = await(ctx, r.Poll, func(ctx context.Context) error {
		stopped, err := r.Host.Runtime.StopSandboxes(ctx)
		if err != nil {
			return fmt.Errorf("stopping sandboxes: %w", err)
		}
		total += stopped
		if stopped > 0 {
			return fail("SandboxesLeft", "%s ran, looking again", upgrade.Count(stopped, "sandbox", "sandboxes"))
		}
		return nil
	})
	return upgrade.Count(total, "sandbox", "sandboxes") + " stopped", err
}
