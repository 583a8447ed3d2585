package steps

import (
	"context"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// runHook keeps the end of what the hook printed, also where it succeeded: its owner may look for it.
func runHook(ctx context.Context, r Run) (string, error) {
	output, err := r.Host.Hooks.Run(ctx, r.Step.Hook, hookEnv(r))
	if err != nil {
		return "", fail("HookFailed", "hook %s: %v", r.Step.Hook, err)
	}
	return Tidy(output), nil
}

// hookEnv says to a hook where it stands. Nothing of it comes from the spec as it was written.
func hookEnv(r Run) []string {
	return []string{
		"REFIT_MACHINE=" + r.Machine,
		"REFIT_OPERATION=" + r.Operation,
		"REFIT_OPERATION_TYPE=" + string(r.Plan.Type),
		"REFIT_DISRUPTION=" + string(r.Plan.Disruption),
		"REFIT_HOOK_PHASE=" + hookPhase(r),
	}
}

// hookPhase is PreApply for hooks before which nothing was changed, and PostApply for the others.
func hookPhase(r Run) string {
	for _, s := range r.Plan.Steps[:min(r.Index, len(r.Plan.Steps))] {
		if s.Kind != upgrade.StepPreflight && s.Kind != upgrade.StepRunHook {
			return "PostApply"
		}
	}
	return "PreApply"
}
