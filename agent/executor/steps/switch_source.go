package steps

import (
	"context"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func switchSource(ctx context.Context, r Run) (string, error) {
	return "", r.Host.Sources.Switch(ctx, *r.Step.Source)
}

func captureSource(_ context.Context, r Run) (journal.Undo, error) {
	back := r.Step.Source.Back()
	return journal.Undo{Steps: []upgrade.Step{{Kind: upgrade.StepSwitchSource, Source: &back}}}, nil
}
