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
	if err := sandboxesStillStopped(ctx, r); err != nil {
		return "", err
	}
	if r.Step.Down {
		return tryUnit(ctx, r)
	}
	if unit == AgentUnit {
		return restartAgent(ctx, r)
	}
	if unit == upgrade.UnitEtcd {
		if err := stillGuarded(ctx, r); err != nil {
			return "", err
		}
	}
	if err := r.Host.Units.Restart(ctx, unit); err != nil {
		return "", afterFailedJob(ctx, r, fmt.Errorf("restarting %s: %w", unit, err))
	}
	return "", answers(ctx, r)
}

// tryUnit starts a unit that did not run before: that it does not run afterwards is what
// was there, and is said, not failed on.
func tryUnit(ctx context.Context, r Run) (string, error) {
	jobErr := r.Host.Units.Restart(ctx, r.Step.Unit)
	grace, cancel := context.WithTimeout(ctx, graceWithin(ctx))
	defer cancel()
	err := answers(grace, r)
	var why *Failure
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("waiting for %s: %w", r.Step.Unit, ctx.Err())
	case err == nil:
		return r.Step.Unit + " did not run before, and does now", nil
	case errors.As(err, &why):
		err = why
	}
	if jobErr != nil {
		err = fmt.Errorf("%w (%w)", err, jobErr)
	}
	return fmt.Sprintf("%s did not run before, and does not now: %s", r.Step.Unit, Tidy(err.Error())), nil
}

// graceWithin leaves half of the step's time, so that the look ends before the step does.
func graceWithin(ctx context.Context) time.Duration {
	if deadline, bounded := ctx.Deadline(); bounded {
		return min(failedJobGrace, time.Until(deadline)/2)
	}
	return failedJobGrace
}

// afterFailedJob looks for a short while whether the unit came up all the same, by its
// own Restart=; the job's error is kept in whatever is wrong otherwise.
func afterFailedJob(ctx context.Context, r Run, jobErr error) error {
	ctx, cancel := context.WithTimeout(ctx, failedJobGrace)
	defer cancel()
	if err := answers(ctx, r); err != nil {
		return errors.Join(err, jobErr)
	}
	return nil
}

// answers waits until what is behind the unit works, then compares its version.
func answers(ctx context.Context, r Run) error {
	unit := r.Step.Unit
	if err := await(ctx, r.Poll, func(ctx context.Context) error { return works(ctx, r.Host, unit) }); err != nil {
		return err
	}
	if IsRuntime(unit) {
		if err := r.Host.Runtime.WaitReady(ctx, runtimeReady); err != nil {
			return fail("RuntimeNotReady", "the container runtime is not ready after its restart: %v", err)
		}
	}
	return settled(ctx, r.Poll, func(ctx context.Context) error { return runs(ctx, r.Host, unit, r.Expect) })
}

// sandboxesStillStopped: between the step that stopped the sandboxes and the restart of
// the runtime the host may have been reset, and the boot has started the kubelet and the
// pods again, under the old runtime. They are stopped once more.
func sandboxesStillStopped(ctx context.Context, r Run) error {
	if !IsRuntime(r.Step.Unit) {
		return nil
	}
	for _, s := range r.Plan.Steps {
		if s.Kind != upgrade.StepStopSandboxes {
			continue
		}
		active, err := r.Host.Units.Active(ctx, StoppedUnit(s))
		if err != nil {
			return fmt.Errorf("looking at %s: %w", StoppedUnit(s), err)
		}
		if active {
			r.Step = s
			_, err = stopSandboxes(ctx, r)
		}
		return err
	}
	return nil
}
