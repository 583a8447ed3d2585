package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

type stager struct {
	findings []upgrade.Finding
	err      error
	pulled   []string

	required, useful []string
	broken           map[string]error // by image
	asked            []string         // programs
	listErr          error
	checked          []upgrade.Finding // by kubeadm
	checkErr         error
	removed          int
}

func (s *stager) Unpack(_ context.Context, c upgrade.PackageChange) (string, func() error, error) {
	return "/unpacked/" + c.Name, func() error { s.removed++; return nil }, nil
}

func (s *stager) Images(_ context.Context, program string, _ upgrade.KubeadmUpgrade) (required, useful []string, err error) {
	s.asked = append(s.asked, program)
	return s.required, s.useful, s.listErr
}

func (s *stager) Preflight(context.Context, string, upgrade.KubeadmUpgrade) ([]upgrade.Finding, error) {
	return s.checked, s.checkErr
}

func (s *stager) stage(plan upgrade.Plan) (StageResult, error) {
	return Stager{Packages: s, Images: s, Kubeadm: s}.Stage(context.Background(), plan)
}

func (s *stager) Stage(context.Context, []upgrade.PackageChange) ([]upgrade.Finding, error) {
	return s.findings, s.err
}

func (s *stager) Pull(_ context.Context, image string) error {
	s.pulled = append(s.pulled, image)
	return s.broken[image]
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
			result, err := s.stage(plan)
			assert.Equal(t, tc.passing, err != nil)
			assert.Equal(t, tc.refused, result.Refused())
			assert.Contains(t, result.Findings, warning)
			assert.Equal(t, !tc.refused && !tc.passing, len(s.pulled) == 1, "images are pulled once the packages are fine")
		})
	}
}

func TestAPlanWithNothingToStageIsStaged(t *testing.T) {
	result, err := Stager{}.Stage(context.Background(), upgrade.Plan{})
	require.NoError(t, err)
	assert.False(t, result.Refused())
}

func TestAFileOutsideTheStageIsNotStaged(t *testing.T) {
	c := kubernetes("kubelet")
	c.File = "../../etc/cron.d/x"
	result, err := Stager{}.Stage(context.Background(), upgrade.Plan{Stage: &upgrade.Step{Packages: []upgrade.PackageChange{c}}})
	require.NoError(t, err)
	require.True(t, result.Refused())
	assert.Equal(t, "PlanInvalid", result.Findings[0].Reason)
}

func TestTheImagesOfTheNextKubeadmAreOnTheHostBeforeTheGrant(t *testing.T) {
	gone := &upgrade.Blocked{Reason: "ImageNotFound", Message: "image r/etcd:2 does not exist", Terminal: true}
	away := &upgrade.Blocked{Reason: "ImagePullFailed", Message: "connection refused"}
	all := []string{"r/apiserver:2", "r/etcd:2", "r/pause:2"}
	for name, tc := range map[string]struct {
		installed bool
		broken    map[string]error
		ignore    []string
		listErr   error
		pulled    []string
		reason    string // of the refusal
		passing   bool
		findings  int
	}{
		"all of them are there":            {pulled: all},
		"the plan leaves kubeadm as it is": {installed: true, pulled: all},
		"a required one does not exist":    {broken: map[string]error{"r/etcd:2": gone}, pulled: all[:2], reason: "ImageNotFound", findings: 1},
		"the registry is away":             {broken: map[string]error{"r/apiserver:2": away}, pulled: all[:1], passing: true},
		"a useful one does not exist":      {broken: map[string]error{"r/pause:2": gone}, pulled: all, findings: 1},
		"kubeadm is to ignore missing ones": {
			broken: map[string]error{"r/etcd:2": gone}, ignore: []string{"ImagePull"}, pulled: all, findings: 1,
		},
		"programs cannot be run from there": {listErr: fmt.Errorf("starting: %w", fs.ErrPermission), findings: 1},
		"kubeadm does not answer":           {listErr: errors.New("exit code 1"), passing: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stager{required: []string{"r/apiserver:2", "r/etcd:2"}, useful: []string{"r/pause:2"}, broken: tc.broken, listErr: tc.listErr}
			step := &upgrade.Step{Kind: upgrade.StepStage, Kubeadm: &upgrade.KubeadmUpgrade{Version: "v" + newKubernetes, IgnorePreflightErrors: tc.ignore}}
			program, removed := "kubeadm", 0
			if !tc.installed {
				step.Packages = []upgrade.PackageChange{kubernetes("kubelet"), kubernetes("kubeadm")}
				program, removed = "/unpacked/kubeadm/usr/bin/kubeadm", 1
			}
			result, err := s.stage(upgrade.Plan{Stage: step})
			assert.Equal(t, tc.passing, err != nil, "%v", err)
			assert.Equal(t, []string{program}, s.asked)
			assert.Equal(t, removed, s.removed, "nothing of it is left")
			assert.Equal(t, tc.pulled, s.pulled)
			assert.Len(t, result.Findings, tc.findings)
			assert.Equal(t, tc.reason != "", result.Refused())
			if tc.reason != "" {
				assert.Equal(t, tc.reason, result.Findings[0].Reason)
			}
		})
	}
}

// B65: a refusal of kubeadm ends the plan before anything is fetched, or drained, for it.
func TestWhatKubeadmWouldRefuseIsRefusedWhileStaging(t *testing.T) {
	refusal := upgrade.Finding{Severity: upgrade.SeverityError, Reason: "KubeadmPreflightFailed"}
	warning := upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: "KubeadmPreflightNotRun"}
	for name, tc := range map[string]struct {
		checked []upgrade.Finding
		err     error
		refused bool
		pulled  int
	}{
		"its checks are fine":       {pulled: 1},
		"a check fails":             {checked: []upgrade.Finding{refusal}, refused: true},
		"a check fails for now":     {err: &upgrade.Blocked{Reason: "KubeadmPreflightFailed"}},
		"its checks cannot be made": {checked: []upgrade.Finding{warning}, pulled: 1},
		"its program cannot be run": {err: fmt.Errorf("starting: %w", fs.ErrPermission), pulled: 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stager{required: []string{"r/apiserver:2"}, checked: tc.checked, checkErr: tc.err}
			step := &upgrade.Step{
				Kind: upgrade.StepStage, Packages: []upgrade.PackageChange{kubernetes("kubeadm")},
				Kubeadm: &upgrade.KubeadmUpgrade{Version: "v" + newKubernetes},
			}
			result, err := s.stage(upgrade.Plan{Stage: step})
			assert.Equal(t, tc.refused, result.Refused())
			assert.Len(t, s.pulled, tc.pulled)
			assert.Equal(t, 1, s.removed, "nothing of it is left")
			for _, f := range tc.checked {
				assert.Contains(t, result.Findings, f)
			}
			var blocked *upgrade.Blocked
			assert.Equal(t, errors.As(tc.err, &blocked), err != nil, "%v", err)
		})
	}
}

type noHooks struct{}

func (noHooks) Check(name string) error { return errors.New(name + " is not on the host") }

// A node is not drained for a hook that could not be run.
func TestAHookThatCannotBeRunIsFoundWhenThePlanIsStaged(t *testing.T) {
	result, err := Stager{Hooks: noHooks{}}.Stage(t.Context(), workerPlan())
	require.NoError(t, err)
	require.True(t, result.Refused())
	assert.Equal(t, "HookRefused", result.Findings[0].Reason)
	assert.Contains(t, result.Findings[0].Message, "raid-check is not on the host")
}
