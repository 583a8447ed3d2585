package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// ReasonJournalMissing says that a grant was accepted and this host has no record of
// the work: it is never run again, only looked at.
const ReasonJournalMissing = "JournalMissing"

// ReasonJournalCorrupt says that the record of the work cannot be trusted; nothing is run from it.
const ReasonJournalCorrupt = "JournalCorrupt"

// Started is an operation that was accepted and has no journal yet.
func Started(op upgrade.Operation) *v1alpha1.Operation {
	return &v1alpha1.Operation{
		ID: op.ID, Type: op.Plan.Type, State: v1alpha1.OperationProcessing,
		StepsTotal: int32(len(op.Plan.Steps)), Description: "Accepted, the executor is being started",
	}
}

// Operation is what a journal says, for the Machine's status. staged is how long the staging before it took.
func Operation(r journal.Record, staged time.Duration) *v1alpha1.Operation {
	start := metav1.NewTime(r.StartTime.Truncate(time.Second))
	op := &v1alpha1.Operation{
		ID: r.Operation.ID, Type: r.Operation.Plan.Type, State: state(r.State),
		Step: string(r.Telling()), StepsDone: int32(r.Passed()), StepsTotal: int32(len(r.Steps)),
		StartTime: &start, Description: shorten(describe(r), maxMessage),
		Phases: phases(r, staged),
	}
	if r.State == journal.Failed {
		op.Reason, op.RolledBack = r.Reason, r.RolledBack
		if op.Reason == "" {
			op.Reason = "ApplyFailed"
		}
	}
	return op
}

// Missing is the outcome of an operation whose records are lost. The host itself says
// whether the work was done.
func Missing(id string, kind v1alpha1.OperationType, reached bool) *v1alpha1.Operation {
	op := &v1alpha1.Operation{ID: id, Type: kind, State: v1alpha1.OperationFailed}
	if reached {
		op.State = v1alpha1.OperationSuccessful
		op.Description = "The host has no record of this operation, but runs what it was to lead to"
		return op
	}
	op.Reason = ReasonJournalMissing
	op.Description = "The grant was accepted, but the host has no record of the work and does not run its target: " +
		"it is not run again; look at the host, then ask for a retry"
	return op
}

// Corrupt is the outcome of an operation whose journal was damaged.
func Corrupt(op upgrade.Operation, err error) *v1alpha1.Operation {
	out := Started(op)
	out.State, out.Reason, out.Description = v1alpha1.OperationFailed, ReasonJournalCorrupt, shorten(err.Error(), maxMessage)
	return out
}

func state(s journal.State) v1alpha1.OperationState {
	switch s {
	case journal.Successful:
		return v1alpha1.OperationSuccessful
	case journal.Failed:
		return v1alpha1.OperationFailed
	}
	return v1alpha1.OperationProcessing
}

func describe(r journal.Record) string {
	switch {
	case r.State == journal.Successful:
		return strings.Join(append([]string{"All steps done"}, r.StillDown()...), "; ")
	case r.State == journal.Failed:
		return r.Message
	case r.RollingBack:
		return fmt.Sprintf("Rolling back, %s failed: %s", cmp.Or(r.FailedStep, "an operation"), r.Message)
	}
	i := min(r.Next(), len(r.Steps)-1)
	if i < 0 {
		return "Starting"
	}
	text := fmt.Sprintf("Step %d of %d: %s", i+1, len(r.Steps), shorten(r.Operation.Plan.Steps[i].Describe(), maxText))
	if s := r.Steps[i]; s.State == journal.StepBegun && s.Message != "" {
		text += ", " + s.Message
	}
	return text
}

// phases are the durations of the host-side phases, in the order in which they began.
func phases(r journal.Record, staged time.Duration) []v1alpha1.PhaseDuration {
	var out []v1alpha1.PhaseDuration
	add := func(name string, d time.Duration) {
		if d <= 0 {
			return
		}
		at := slices.IndexFunc(out, func(p v1alpha1.PhaseDuration) bool { return p.Name == name })
		if at < 0 {
			out, at = append(out, v1alpha1.PhaseDuration{Name: name}), len(out)
		}
		out[at].Duration.Duration += d.Round(time.Millisecond)
	}
	add("Stage", staged)
	for _, step := range r.Steps {
		add(phaseOf(step.Kind), step.Duration())
	}
	for _, step := range r.Rollback {
		add("Rollback", step.Duration())
	}
	return out
}

func phaseOf(kind upgrade.StepKind) string {
	switch kind {
	case upgrade.StepStopSandboxes, upgrade.StepReloadUnits, upgrade.StepRestartUnit, upgrade.StepRestartStaticPod:
		return "Restart"
	case upgrade.StepReboot:
		return "Reboot"
	case upgrade.StepPreflight, upgrade.StepVerify:
		return "Verify"
	}
	return "Apply"
}
