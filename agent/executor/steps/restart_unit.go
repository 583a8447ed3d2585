package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// failedJobGrace: a unit whose start job failed may still come up by its own Restart=.
	failedJobGrace = 30 * time.Second
	runtimeReady   = 3 * time.Minute
)

// restartUnit restarts once per attempt and waits until what is behind the unit
// answers; then its version is compared once. It never restarts until a version
// matches: a version that is reported otherwise would restart it for ever.
func restartUnit(ctx context.Context, r Run) (string, error) {
	unit := r.Step.Unit
	if err := r.Host.Units.Restart(ctx, unit); err != nil {
		grace, cancel := context.WithTimeout(ctx, failedJobGrace)
		defer cancel()
		if up := await(grace, r.Poll, func(ctx context.Context) error { return works(ctx, r.Host, unit) }); up != nil {
			return "", fmt.Errorf("restarting %s: %w", unit, errors.Join(err, up))
		}
	}
	if err := await(ctx, r.Poll, func(ctx context.Context) error { return works(ctx, r.Host, unit) }); err != nil {
		return "", err
	}
	if componentOf(unit) == containerRuntime {
		if err := runtimeAnswers(ctx, r); err != nil {
			return "", err
		}
	}
	return "", settled(ctx, r.Poll, func(ctx context.Context) error { return runs(ctx, r.Host, unit, r.Expect) })
}

// runtimeAnswers waits for the runtime, and lets the kubelet on again if it was
// stopped together with the sandboxes: static pods come back with the new runtime.
func runtimeAnswers(ctx context.Context, r Run) error {
	if err := r.Host.Runtime.WaitReady(ctx, runtimeReady); err != nil {
		return fail("RuntimeNotReady", "the container runtime is not ready after its restart: %v", err)
	}
	if !stopsSandboxes(r.Plan) {
		return nil
	}
	active, err := r.Host.Units.Active(ctx, KubeletUnit)
	if err != nil || active {
		return err
	}
	if err := r.Host.Units.Start(ctx, KubeletUnit); err != nil {
		return fmt.Errorf("starting %s, which was stopped with the sandboxes: %w", KubeletUnit, err)
	}
	return nil
}

func stopsSandboxes(p upgrade.Plan) bool {
	for _, s := range p.Steps {
		if s.Kind == upgrade.StepStopSandboxes {
			return true
		}
	}
	return false
}
