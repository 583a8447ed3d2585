package steps

import (
	"context"
	"fmt"
)

// stopSandboxes leaves no container of the old runtime behind. The kubelet is stopped
// first, or it would start the static pods again at once; the restart of the runtime
// lets it on again.
func stopSandboxes(ctx context.Context, r Run) (string, error) {
	active, err := r.Host.Units.Active(ctx, KubeletUnit)
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", KubeletUnit, err)
	}
	if active {
		if err := r.Host.Units.Stop(ctx, KubeletUnit); err != nil {
			return "", fmt.Errorf("stopping %s: %w", KubeletUnit, err)
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
			return fail("SandboxesLeft", "%d sandboxes ran, looking again", stopped)
		}
		return nil
	})
	return fmt.Sprintf("%d sandboxes stopped", total), err
}
