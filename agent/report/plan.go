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
		status.Steps = append(status.Steps, shorten(step.Describe(), maxText))
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

// shorten cuts between characters: half a one would not be valid text.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
