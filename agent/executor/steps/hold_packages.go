package steps

import (
	"context"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func holdPackages(ctx context.Context, r Run) (string, error) {
	return "", r.Host.Packages.SetHold(ctx, names(r.Step.Packages), true)
}

func unholdPackages(ctx context.Context, r Run) (string, error) {
	return "", r.Host.Packages.SetHold(ctx, names(r.Step.Packages), false)
}

// captureHold restores exactly the holds that there were, not all of the step's packages.
func captureHold(_ context.Context, r Run) (journal.Undo, error) {
	hold := r.Step.Kind == upgrade.StepHoldPackages
	var changed []upgrade.PackageChange
	for _, c := range r.Step.Packages {
		if r.Held[c.Name] != hold {
			changed = append(changed, upgrade.PackageChange{Name: c.Name})
		}
	}
	if len(changed) == 0 {
		return journal.Undo{}, nil
	}
	inverse := upgrade.StepHoldPackages
	if hold {
		inverse = upgrade.StepUnholdPackages
	}
	return journal.Undo{Steps: []upgrade.Step{{Kind: inverse, Packages: changed}}}, nil
}
