package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// StagePackages makes package files ready and simulates their transaction.
type StagePackages interface {
	Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error)
}

// StageImages pulls images.
type StageImages interface {
	Pull(ctx context.Context, image string) error
}

// StageResult is what staging found, and how long its parts took.
type StageResult struct {
	Findings  []upgrade.Finding        `json:"findings,omitempty"`
	Durations []v1alpha1.PhaseDuration `json:"durations,omitempty"`
}

// Refused says that the plan cannot be carried out as it is.
func (r StageResult) Refused() bool {
	for _, f := range r.Findings {
		if f.Severity == upgrade.SeverityError {
			return true
		}
	}
	return false
}

// Stage does everything of a plan that disturbs nothing. A refusal that only another
// spec or another host can lift is a finding; an error may pass by itself.
func Stage(ctx context.Context, plan upgrade.Plan, packages StagePackages, images StageImages) (StageResult, error) {
	var result StageResult
	if plan.Stage == nil {
		return result, nil
	}
	if err := validInstall(plan.Stage.Packages); len(plan.Stage.Packages) > 0 && err != nil {
		result.Findings = append(result.Findings, refusal("PlanInvalid", err))
		return result, nil
	}
	for _, part := range []struct {
		name string
		do   func() ([]upgrade.Finding, error)
	}{
		{"Packages", func() ([]upgrade.Finding, error) {
			if len(plan.Stage.Packages) == 0 {
				return nil, nil
			}
			return packages.Stage(ctx, plan.Stage.Packages)
		}},
		{"Images", func() ([]upgrade.Finding, error) { return nil, pull(ctx, images, plan.Stage.Images) }},
	} {
		start := time.Now()
		findings, err := part.do()
		result.Findings = append(result.Findings, findings...)
		result.Durations = append(result.Durations, v1alpha1.PhaseDuration{Name: part.name, Duration: metav1.Duration{Duration: time.Since(start)}})
		var blocked *upgrade.Blocked
		if errors.As(err, &blocked) && blocked.Terminal {
			result.Findings = append(result.Findings, refusal(blocked.Reason, errors.New(blocked.Message)))
			return result, nil
		}
		if err != nil {
			return result, err
		}
	}
	return result, nil
}

func refusal(reason string, err error) upgrade.Finding {
	return upgrade.Finding{Severity: upgrade.SeverityError, Reason: reason, Message: err.Error()}
}

func pull(ctx context.Context, images StageImages, refs []string) error {
	for _, ref := range refs {
		if err := images.Pull(ctx, ref); err != nil {
			return fmt.Errorf("pulling %s: %w", ref, err)
		}
	}
	return nil
}
