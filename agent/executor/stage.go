package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// StagePackages makes package files ready and simulates their transaction.
type StagePackages interface {
	Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error)
	// Unpack puts the files of a staged package into a directory of their own, which remove takes away.
	Unpack(ctx context.Context, change upgrade.PackageChange) (dir string, remove func() error, err error)
}

// StageImages pulls images. One that its registry does not have is a terminal upgrade.Blocked.
type StageImages interface {
	Pull(ctx context.Context, image string) error
}

// StageKubeadm is a kubeadm that may not be installed yet: program.
type StageKubeadm interface {
	// Preflight makes the checks that come before an upgrade, and changes nothing.
	Preflight(ctx context.Context, program string, u upgrade.KubeadmUpgrade) ([]upgrade.Finding, error)
	// Images are those that an upgrade will run on this host: without the required ones
	// it cannot come about, the useful ones are good to have.
	Images(ctx context.Context, program string, u upgrade.KubeadmUpgrade) (required, useful []string, err error)
}

// Stager does everything of a plan that disturbs nothing, so that nothing is left to
// be fetched once pods have been evicted for it.
type Stager struct {
	Packages StagePackages
	Images   StageImages
	Kubeadm  StageKubeadm
	// Hooks of the host's owner; nil where none are looked at.
	Hooks StageHooks
	// Policy of the host's owner; nil where none is looked at, as where the plan is judged once more later.
	Policy  steps.Policy
	Sources StageSources
}

// StageSources are the package sources of the host.
type StageSources interface {
	Sources(ctx context.Context, packages []string) ([]upgrade.SourceFacts, error)
}

// StageHooks looks whether a hook could be run.
type StageHooks interface {
	Check(name string) error
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

// Stage stages a plan. A refusal that only another spec or another host can lift is a
// finding; an error may pass by itself.
func (s Stager) Stage(ctx context.Context, plan upgrade.Plan) (StageResult, error) {
	result := StageResult{}
	outside, err := s.outside(ctx, plan)
	if err != nil {
		return result, err
	}
	result.Findings = append(outside, s.hooks(plan)...)
	if plan.Stage == nil || result.Refused() {
		return result, nil
	}
	if err := validStage(*plan.Stage); err != nil {
		result.Findings = append(result.Findings, refusal("PlanInvalid", err))
		return result, nil
	}
	for _, part := range []struct {
		name string
		do   func(context.Context, upgrade.Step) ([]upgrade.Finding, error)
	}{{"Packages", s.packages}, {"Images", s.images}} {
		start := time.Now()
		findings, err := part.do(ctx, *plan.Stage)
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

// outside is what the owner of the host does not allow, by the file as it is now: nothing is
// fetched for a plan that would be refused once the node is drained for it.
func (s Stager) outside(ctx context.Context, plan upgrade.Plan) ([]upgrade.Finding, error) {
	if s.Policy == nil {
		return nil, nil
	}
	facts := upgrade.Facts{Policy: s.Policy.Read()}
	if slices.ContainsFunc(plan.Steps, func(step upgrade.Step) bool { return step.Kind == upgrade.StepSwitchSource }) {
		var err error
		if facts.Packages.Sources, err = s.Sources.Sources(ctx, nil); err != nil {
			return nil, fmt.Errorf("reading the package sources of this host: %w", err)
		}
	}
	if blocked := upgrade.IsBlocked(upgrade.JudgePlan(facts, plan)); blocked != nil {
		return []upgrade.Finding{refusal(blocked.Reason, errors.New(blocked.Message))}, nil //nolint:nilerr // a refusal is what was to be found out
	}
	return nil, nil
}

// hooks that could not be run are found before a node is drained for them.
func (s Stager) hooks(plan upgrade.Plan) []upgrade.Finding {
	var findings []upgrade.Finding
	for _, step := range plan.Steps {
		if step.Kind != upgrade.StepRunHook || s.Hooks == nil {
			continue
		}
		if err := s.Hooks.Check(step.Hook); err != nil {
			findings = append(findings, refusal("HookRefused", err))
		}
	}
	return findings
}

func validStage(stage upgrade.Step) error {
	if len(stage.Packages) > 0 {
		if err := validInstall(stage.Packages); err != nil {
			return err
		}
	}
	if stage.Kubeadm != nil {
		return validKubeadm(stage.Kubeadm)
	}
	return nil
}

func refusal(reason string, err error) upgrade.Finding {
	return upgrade.Finding{Severity: upgrade.SeverityError, Reason: reason, Message: err.Error()}
}

func (s Stager) packages(ctx context.Context, stage upgrade.Step) ([]upgrade.Finding, error) {
	if len(stage.Packages) == 0 {
		return nil, nil
	}
	return s.Packages.Stage(ctx, stage.Packages)
}

func (s Stager) images(ctx context.Context, stage upgrade.Step) ([]upgrade.Finding, error) {
	for _, ref := range stage.Images {
		if err := s.Images.Pull(ctx, ref); err != nil {
			return nil, fmt.Errorf("pulling %s: %w", ref, err)
		}
	}
	if stage.Kubeadm == nil {
		return nil, nil
	}
	answer, err := s.askKubeadm(ctx, stage)
	if errors.Is(err, fs.ErrPermission) { // as on a file system that runs no programs
		return []upgrade.Finding{imageFinding("the images of %s are not staged and will be pulled during the upgrade: %v", stage.Kubeadm.Version, err)}, nil
	}
	if err != nil || (StageResult{Findings: answer.findings}).Refused() {
		return answer.findings, err
	}
	findings, err := s.kubeadmImages(ctx, stage, answer)
	return append(answer.findings, findings...), err
}

// answer is what kubeadm says of its upgrade.
type answer struct {
	findings         []upgrade.Finding
	required, useful []string
}

// imagePull is the id under which kubeadm itself lets missing images pass.
const imagePull = "ImagePull"

// kubeadmImages pulls what the kubeadm of the target will run.
func (s Stager) kubeadmImages(ctx context.Context, stage upgrade.Step, a answer) ([]upgrade.Finding, error) {
	required, useful := a.required, a.useful
	if slices.Contains(stage.Kubeadm.IgnorePreflightErrors, imagePull) {
		required, useful = nil, append(required, useful...)
	}
	for _, image := range required {
		if err := s.Images.Pull(ctx, image); err != nil {
			return nil, err //nolint:wrapcheck // says which image
		}
	}
	var findings []upgrade.Finding
	for _, image := range useful {
		err := s.Images.Pull(ctx, image)
		if err != nil && ctx.Err() != nil {
			return findings, err //nolint:wrapcheck // says which image
		}
		if err != nil {
			findings = append(findings, imageFinding("image %s is not staged; where it is needed it will be pulled later: %v", image, err))
		}
	}
	return findings, nil
}

func imageFinding(format string, args ...any) upgrade.Finding {
	return upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: upgrade.FindingImageNotStaged, Message: fmt.Sprintf(format, args...)}
}

// askKubeadm asks the staged kubeadm, out of its package; the installed one where the plan leaves it.
func (s Stager) askKubeadm(ctx context.Context, stage upgrade.Step) (answer, error) {
	at := slices.IndexFunc(stage.Packages, func(c upgrade.PackageChange) bool { return c.Name == "kubeadm" && c.To != "" })
	if at < 0 {
		return s.ask(ctx, "kubeadm", *stage.Kubeadm)
	}
	dir, remove, err := s.Packages.Unpack(ctx, stage.Packages[at])
	if err != nil {
		return answer{}, err //nolint:wrapcheck // says what it was unpacking
	}
	a, err := s.ask(ctx, filepath.Join(dir, "usr/bin/kubeadm"), *stage.Kubeadm)
	return a, errors.Join(err, remove())
}

// ask asks first what kubeadm would refuse: then no image is needed.
func (s Stager) ask(ctx context.Context, program string, u upgrade.KubeadmUpgrade) (a answer, err error) {
	if a.findings, err = s.Kubeadm.Preflight(ctx, program, u); err != nil || (StageResult{Findings: a.findings}).Refused() {
		return a, err
	}
	a.required, a.useful, err = s.Kubeadm.Images(ctx, program, u)
	return a, err
}
