package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

type stager struct {
	findings []upgrade.Finding
	err      error
	pulled   []string
}

func (s *stager) Stage(context.Context, []upgrade.PackageChange) ([]upgrade.Finding, error) {
	return s.findings, s.err
}

func (s *stager) Pull(_ context.Context, image string) error {
	s.pulled = append(s.pulled, image)
	return nil
}

func TestStagingTellsARefusalFromAFaultThatPasses(t *testing.T) {
	warning := upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: "NoRollbackPackage"}
	for name, tc := range map[string]struct {
		err     error
		refused bool
		passing bool
	}{
		"all is well":                {nil, false, false},
		"the transaction is refused": {&upgrade.Blocked{Reason: "WouldRemove", Message: "it would remove cri-tools", Terminal: true}, true, false},
		"the mirror is away":         {&upgrade.Blocked{Reason: "RepoUnreachable", Message: "refused"}, false, true},
		"something else":             {errors.New("disk"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stager{findings: []upgrade.Finding{warning}, err: tc.err}
			plan := upgrade.Plan{Stage: &upgrade.Step{Kind: upgrade.StepStage, Images: []string{"pause:3.10"}, Packages: []upgrade.PackageChange{kubernetes("kubelet")}}}
			result, err := Stage(context.Background(), plan, s, s)
			assert.Equal(t, tc.passing, err != nil)
			assert.Equal(t, tc.refused, result.Refused())
			assert.Contains(t, result.Findings, warning)
			assert.Equal(t, !tc.refused && !tc.passing, len(s.pulled) == 1, "images are pulled once the packages are fine")
		})
	}
}

func TestAPlanWithNothingToStageIsStaged(t *testing.T) {
	result, err := Stage(context.Background(), upgrade.Plan{}, nil, nil)
	require.NoError(t, err)
	assert.False(t, result.Refused())
}

func TestAFileOutsideTheStageIsNotStaged(t *testing.T) {
	c := kubernetes("kubelet")
	c.File = "../../etc/cron.d/x"
	result, err := Stage(context.Background(), upgrade.Plan{Stage: &upgrade.Step{Packages: []upgrade.PackageChange{c}}}, nil, nil)
	require.NoError(t, err)
	require.True(t, result.Refused())
	assert.Equal(t, "PlanInvalid", result.Findings[0].Reason)
}
