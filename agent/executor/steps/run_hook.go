package steps

import "context"

func runHook(ctx context.Context, r Run) (string, error) {
	if err := r.Host.Hooks.Run(ctx, r.Step.Hook); err != nil {
		return "", fail("HookFailed", "hook %s: %v", r.Step.Hook, err)
	}
	return "", nil
}
