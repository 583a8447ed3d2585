package steps

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Run is one step of one operation, as a handler sees it.
type Run struct {
	Host *Host
	Step upgrade.Step
	// Attempt is 1 for the first try; more says that a crash may have left half of the effect.
	Attempt int
	// BeganInBoot is the boot in which the step was first begun.
	BeganInBoot string
	// Machine and Operation are who the host is and under which grant the step is done.
	Machine, Operation string
	// Index of the step in its plan.
	Index int
	// Plan that the step belongs to; for a rollback, the plan that is undone.
	Plan upgrade.Plan
	// Expect is what must run once the steps up to here took effect: the plan's final
	// expectation, or the baseline in a rollback.
	Expect upgrade.Expectation
	// Held are the packages that are on hold before this step.
	Held map[string]bool
	// PackageDir holds the files to install.
	PackageDir string
	// Poll is the pause between two looks at something that takes time.
	Poll time.Duration
}

// Kind says how steps of one kind are run.
type Kind struct {
	// Do makes it so and returns once that is observed; message is what is worth recording of a success.
	Do func(ctx context.Context, r Run) (message string, err error)
	// Capture looks at the host before the first effect and says what brings it back.
	Capture func(ctx context.Context, r Run) (journal.Undo, error)
	// Deadline for one attempt.
	Deadline time.Duration
	// Interruptible kinds are cut short on request; the others are let finish, since half
	// of their effect is worse than a late end.
	Interruptible bool
	// Counted says that an attempt that was cut short counts: it had its effect.
	Counted bool
	// UsesUnits says that the step needs units to start and stop freely: a resume at boot
	// that holds the kubelet back lets go of it before.
	UsesUnits bool
}

// Kinds that the executor knows. A plan with any other kind is refused whole.
var kinds = map[upgrade.StepKind]Kind{
	upgrade.StepPreflight:       {Do: preflight, Deadline: 5 * time.Minute, Interruptible: true, UsesUnits: true}, // it asks what runs
	upgrade.StepSnapshotEtcd:    {Do: snapshotEtcd, Deadline: 30 * time.Minute, Interruptible: true, UsesUnits: true},
	upgrade.StepGuardEtcd:       {Do: guardEtcd, Deadline: 10 * time.Minute, Interruptible: true, UsesUnits: true},
	upgrade.StepMoveEtcdLeader:  {Do: moveEtcdLeader, Deadline: 2 * time.Minute, Interruptible: true, UsesUnits: true},
	upgrade.StepUnholdPackages:  {Do: unholdPackages, Capture: captureHold, Deadline: 10 * time.Minute},
	upgrade.StepHoldPackages:    {Do: holdPackages, Capture: captureHold, Deadline: 10 * time.Minute},
	upgrade.StepSwitchSource:    {Do: switchSource, Capture: captureSource, Deadline: 2 * time.Minute},
	upgrade.StepInstallPackages: {Do: installPackages, Capture: capturePackages, Deadline: 30 * time.Minute},
	upgrade.StepWriteConfig:     {Do: writeConfig, Capture: captureConfig, Deadline: 2 * time.Minute},
	upgrade.StepKubeadmUpgrade:  {Do: kubeadmUpgrade, Capture: captureKubeadm, Deadline: 40 * time.Minute, UsesUnits: true},
	upgrade.StepReloadUnits:     {Do: reloadUnits, Deadline: 2 * time.Minute, UsesUnits: true},
	upgrade.StepStopSandboxes:   {Do: stopSandboxes, Deadline: 10 * time.Minute, Interruptible: true, UsesUnits: true},
	upgrade.StepRestartUnit:     {Do: restartUnit, Deadline: 5 * time.Minute, Interruptible: true, UsesUnits: true},
	upgrade.StepRunHook:         {Do: runHook, Deadline: 30 * time.Minute, UsesUnits: true},
	upgrade.StepReboot:          {Do: reboot, Deadline: 30 * time.Minute, Interruptible: true, Counted: true, UsesUnits: true},
	upgrade.StepVerify:          {Do: verify, Deadline: 10 * time.Minute, Interruptible: true, UsesUnits: true},

	upgrade.StepKubeadmRenewCertificates: {Do: kubeadmRenewCertificates, Capture: captureCertificates, Deadline: 10 * time.Minute, UsesUnits: true},
	upgrade.StepRestartStaticPod:         {Do: restartStaticPod, Deadline: 10 * time.Minute, Interruptible: true, UsesUnits: true},
	upgrade.StepRestoreCertificates:      {Do: restoreCertificates, Deadline: 2 * time.Minute},
}

// For is the kind of a step; false for one that the executor does not know.
func For(kind upgrade.StepKind) (Kind, bool) {
	k, ok := kinds[kind]
	return k, ok
}

// Failure is a step that did not come about: a reason for programs, a message for people.
type Failure struct {
	Reason  string
	Message string
}

// Error implements error; the reason is for programs and is not repeated in the text.
func (f *Failure) Error() string { return f.Message }

func fail(reason, format string, args ...any) error {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Explain is the reason and message of a failed step, whatever went wrong.
func Explain(kind upgrade.StepKind, err error) (reason, message string) {
	return reasonOf(kind, err), Tidy(err.Error())
}

func reasonOf(kind upgrade.StepKind, err error) string {
	var failure *Failure
	var blocked *upgrade.Blocked
	switch {
	case errors.As(err, &failure):
		return failure.Reason
	case errors.As(err, &blocked):
		return blocked.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return string(kind) + "TimedOut"
	}
	return string(kind) + "Failed"
}
