package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// runtimeGrace is how long a runtime may take to answer that had its time to come up before.
const runtimeGrace = 10 * time.Second

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
	if r.Step.MayBeGone && !runtimeAnswers(ctx, r) {
		return "the container runtime does not answer, and has started nothing that could be stopped through it", nil
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

// runtimeAnswers gives a runtime that may not have come up a short while to say something.
// What the old one has left behind is found by the verification.
func runtimeAnswers(ctx context.Context, r Run) bool {
	grace := runtimeGrace
	if deadline, bounded := ctx.Deadline(); bounded {
		grace = min(grace, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	return await(ctx, r.Poll, func(ctx context.Context) error {
		_, _, err := r.Host.Runtime.Version(ctx)
		return err //nolint:wrapcheck // nobody reads it
	}) == nil
}
