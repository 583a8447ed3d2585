package apply

import (
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/usage"
)

// State is how an operation, or a request for one, ended.
type State string

// The states. Within the format states are only added.
const (
	// UpToDate: there was nothing to do.
	UpToDate State = "UpToDate"
	// Successful: all steps are done.
	Successful State = "Successful"
	// Refused: nothing was begun.
	Refused State = "Refused"
	// RolledBack: it failed, and the host runs what it ran before.
	RolledBack State = "RolledBack"
	// NotRolledBack: it failed, and something of it stays.
	NotRolledBack State = "NotRolledBack"
	// Stopped: the executor ended before the operation had; applying the file again goes on.
	Stopped State = "Stopped"
	// Processing: somebody works on it.
	Processing State = "Processing"
)

// Code is the exit code of a state.
func (s State) Code() int {
	switch s {
	case UpToDate, Successful:
		return 0
	case Refused:
		return usage.ExitRefused
	case RolledBack:
		return usage.ExitRolledBack
	case NotRolledBack, Stopped:
		return usage.ExitNotRolledBack
	}
	return usage.ExitFault
}

// Outcome is how an operation went, for people and programs.
type Outcome struct {
	State State `json:"state"`
	// Operation as the agent would report it in the Machine's status.
	Operation v1alpha1.Operation `json:"operation"`
	// EndTime of the operation; unset while it has none.
	EndTime *time.Time `json:"endTime,omitempty"`
	// NotUndone names what could not be undone, and why.
	NotUndone []string `json:"notUndone,omitempty"`
}

// OutcomeOf is what a journal says of the end of its operation. An open one has stopped:
// who knows that somebody works on it says Processing instead.
func OutcomeOf(r journal.Record) Outcome {
	out := Outcome{State: Stopped, Operation: *report.Operation(r, 0), EndTime: r.EndTime, NotUndone: r.NotUndone}
	switch {
	case r.State == journal.Successful:
		out.State = Successful
	case r.State == journal.Failed && (r.RolledBack || !r.Touched()):
		out.State = RolledBack
	case r.State == journal.Failed:
		out.State = NotRolledBack
	}
	return out
}
