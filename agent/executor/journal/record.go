package journal

import (
	"slices"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// FormatVersion is the version of the file format. A reader refuses a newer one.
const FormatVersion = 1

// State is how an operation goes.
type State string

// The states of an operation.
const (
	Open       State = "Open"
	Successful State = "Successful"
	Failed     State = "Failed"
)

// StepState is how one step goes.
type StepState string

// The states of a step. Begun is written before the effect, Done after it: a crash
// between the two leaves Begun, and the step is run again.
const (
	StepPending StepState = "Pending"
	StepBegun   StepState = "Begun"
	StepDone    StepState = "Done"
	StepFailed  StepState = "Failed"
	StepUndone  StepState = "Undone"
)

// Record is everything that is known of one operation.
type Record struct {
	// Operation is the accepted plan, whole: a resume at boot needs nothing else.
	Operation upgrade.Operation `json:"operation"`
	// BootID of the boot in which the operation started.
	BootID    string     `json:"bootID,omitempty"`
	StartTime time.Time  `json:"startTime"`
	EndTime   *time.Time `json:"endTime,omitempty"`
	State     State      `json:"state"`
	// Reason and Message say why the operation failed; they are set before the first
	// step is undone.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// FailedStep is the step that failed; "" when there was none, such as a refusal before the first.
	FailedStep upgrade.StepKind `json:"failedStep,omitempty"`
	// RollingBack says that the direction has turned; it never turns again.
	RollingBack bool `json:"rollingBack,omitempty"`
	// RolledBack says that the host was brought back to the baseline, and that this was observed.
	RolledBack bool `json:"rolledBack,omitempty"`
	// NotUndone names what could not be undone, and why.
	NotUndone []string `json:"notUndone,omitempty"`
	// Baseline is what ran before the first step.
	Baseline *Baseline `json:"baseline,omitempty"`
	// Steps mirror Operation.Plan.Steps, index by index.
	Steps []StepRecord `json:"steps"`
	// Rollback is what undoes them; each entry carries its own step.
	Rollback []StepRecord `json:"rollback,omitempty"`
}

// Baseline is what was observed before the first step: the state that a rollback leads back to.
type Baseline struct {
	Kubelet      string `json:"kubelet,omitempty"`
	ControlPlane string `json:"controlPlane,omitempty"`
	RuntimeName  string `json:"runtimeName,omitempty"`
	Runtime      string `json:"runtime,omitempty"`
	// Holds among the packages that the plan touches.
	Holds []string `json:"holds,omitempty"`
	// Down are the units that the plan restarts and that did not work before it.
	Down []string `json:"down,omitempty"`
}

// WasDown says that a unit did not work before the first step.
func (r Record) WasDown(unit string) bool {
	return r.Baseline != nil && slices.Contains(r.Baseline.Down, unit)
}

// StillDown are what the last try of each unit said that did not work before.
func (r Record) StillDown() []string {
	var units, said []string
	for _, list := range [][]StepRecord{r.Steps, r.Rollback} {
		for i, s := range list {
			step := s.Step
			if step == nil {
				step = &r.Operation.Plan.Steps[i]
			}
			if !step.Down || s.State != StepDone || s.Message == "" {
				continue
			}
			if at := slices.Index(units, step.Unit); at >= 0 {
				said[at] = s.Message
				continue
			}
			units, said = append(units, step.Unit), append(said, s.Message)
		}
	}
	return said
}

// StepRecord is one step and how it went.
type StepRecord struct {
	Kind  upgrade.StepKind `json:"kind"`
	State StepState        `json:"state"`
	// Attempts counts how often the step was begun.
	Attempts int `json:"attempts,omitempty"`
	// BootID of the boot in which the step was first begun; a reboot step is done in another one.
	BootID string     `json:"bootID,omitempty"`
	Start  *time.Time `json:"start,omitempty"`
	End    *time.Time `json:"end,omitempty"`
	// Message is the reason of a failure, what is worth knowing of a success, or what the step waits for.
	Message string `json:"message,omitempty"`
	// Undo are the steps that bring back what was there, captured before the effect.
	Undo []upgrade.Step `json:"undo,omitempty"`
	// NoUndo says why something of this step cannot be brought back.
	NoUndo string `json:"noUndo,omitempty"`
	// Step itself, in a rollback.
	Step *upgrade.Step `json:"step,omitempty"`
}

// Duration of the step, zero while it is not finished.
func (s StepRecord) Duration() time.Duration {
	if s.Start == nil || s.End == nil {
		return 0
	}
	return s.End.Sub(*s.Start)
}

// Finished says that the operation has its outcome.
func (r Record) Finished() bool { return r.State == Successful || r.State == Failed }

// Next is the index of the first step that is not done, len(Steps) when all are.
func (r Record) Next() int { return next(r.Steps) }

// NextRollback is the index of the first rollback step that has no outcome.
func (r Record) NextRollback() int { return next(r.Rollback) }

func next(steps []StepRecord) int {
	for i, s := range steps {
		if s.State == StepPending || s.State == StepBegun {
			return i
		}
	}
	return len(steps)
}

// looking are the kinds that change nothing of the host that could be undone, or would have to be.
var looking = []upgrade.StepKind{
	upgrade.StepPreflight, upgrade.StepVerify, upgrade.StepSnapshotEtcd, upgrade.StepGuardEtcd, upgrade.StepMoveEtcdLeader,
}

// Touched says that some step has begun that may have changed the host.
func (r Record) Touched() bool {
	for _, s := range r.Steps {
		if s.State != StepPending && !slices.Contains(looking, s.Kind) {
			return true
		}
	}
	return false
}

// Done counts finished steps.
func (r Record) Done() int {
	n := 0
	for _, s := range r.Steps {
		if s.State == StepDone {
			n++
		}
	}
	return n
}

// Telling is the kind of the step that says where the operation stands: the one that
// failed once the direction has turned, whatever is being undone; else the one that
// runs or is next, and the last when all are done.
func (r Record) Telling() upgrade.StepKind {
	if r.RollingBack {
		return r.FailedStep
	}
	if len(r.Steps) == 0 {
		return ""
	}
	return r.Steps[min(r.Next(), len(r.Steps)-1)].Kind
}

// Passed counts the steps before the one that Telling names, so that number and name
// agree: a step that was undone was passed, too.
func (r Record) Passed() int {
	if !r.RollingBack {
		return r.Next()
	}
	begun := 0
	for _, s := range r.Steps {
		if s.State == StepFailed {
			return begun
		}
		if s.State != StepPending {
			begun++
		}
	}
	if begun > 0 && r.Steps[begun-1].Kind == r.FailedStep {
		return begun - 1 // it failed, and has been undone since
	}
	return begun
}

// Current is the step that runs, or ran last.
func (r Record) Current() StepRecord {
	steps := r.Steps
	if len(r.Rollback) > 0 {
		steps = r.Rollback
	}
	last := StepRecord{}
	for _, s := range steps {
		if s.State != StepPending {
			last = s
		}
	}
	return last
}
