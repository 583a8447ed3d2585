package report

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Bounds of the schema; a Machine stays small.
const (
	maxSteps    = 64
	maxFindings = 32
	maxText     = 256
	maxMessage  = 1024
)

func planStatus(p *upgrade.Plan) *v1alpha1.PlanStatus {
	status := &v1alpha1.PlanStatus{AssignmentID: p.AssignmentID, Hash: p.Hash, Disruption: p.Disruption}
	for _, step := range p.Steps {
		status.Steps = append(status.Steps, Describe(step))
	}
	if len(status.Steps) > maxSteps {
		rest := len(status.Steps) - maxSteps + 1
		status.Steps = append(status.Steps[:maxSteps-1], fmt.Sprintf("and %d more steps", rest))
	}
	for _, finding := range p.Findings[:min(len(p.Findings), maxFindings)] {
		finding.Message = shorten(finding.Message, maxText)
		status.Findings = append(status.Findings, finding)
	}
	return status
}

// Describe is a step for people: what, and on what.
func Describe(step upgrade.Step) string {
	text := string(step.Kind)
	if on := object(step); on != "" {
		text += ": " + on
	}
	return shorten(text, maxText)
}

func object(step upgrade.Step) string {
	switch {
	case step.Kubeadm != nil:
		return step.Kubeadm.Version
	case step.Source != nil:
		return step.Source.Name + " to " + step.Source.To
	case step.File != nil:
		return step.File.Path
	case len(step.Packages) > 0:
		return packages(step)
	case step.Expect != nil:
		return ""
	}
	return strings.TrimSpace(step.Unit + step.Hook + step.Reason)
}

func packages(step upgrade.Step) string {
	words := make([]string, 0, len(step.Packages))
	for _, p := range step.Packages {
		switch {
		case step.Kind != upgrade.StepInstallPackages:
			words = append(words, p.Name)
		case p.To == "":
			words = append(words, "remove "+p.Name)
		default:
			words = append(words, p.Name+" "+p.To)
		}
	}
	return strings.Join(words, ", ")
}

// shorten cuts between characters: half a one would not be valid text.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
