package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// turn records why step i failed and what will be undone, in one write.
func (o *operation) turn(i int, err error) error {
	rec := o.j.Record()
	kind := upgrade.StepHoldPackages
	if i < len(rec.Steps) {
		kind = rec.Steps[i].Kind
	}
	reason, message := steps.Explain(kind, err)
	rollback, notUndone := wayBack(rec)
	return o.j.Turn(i, journal.Cause{Step: kind, Reason: reason, Message: message}, rollback, notUndone)
}

// wayBack is what undoes everything that was begun, last first; then the units that
// were restarted are restarted with what is back, first first; then it is verified.
func wayBack(rec journal.Record) (rollback []upgrade.Step, notUndone []string) {
	if !rec.Touched() {
		return nil, nil
	}
	if again, crossed := crossed(rec); crossed {
		rollback = append(rollback, again)
	}
	for i := len(rec.Steps) - 1; i >= 0; i-- {
		s := rec.Steps[i]
		if s.State == journal.StepPending {
			continue
		}
		rollback = append(rollback, s.Undo...)
		// A kubeadm that failed may have put the static pods back by itself: verify tells.
		if s.NoUndo != "" && (s.Kind != upgrade.StepKubeadmUpgrade || s.State == journal.StepDone) {
			notUndone = append(notUndone, fmt.Sprintf("%s: %s", s.Kind, s.NoUndo))
		}
	}
	rollback = append(rollback, upgrade.Step{Kind: upgrade.StepReloadUnits})
	for _, unit := range unitsToRestart(rec) {
		rollback = append(rollback, upgrade.Step{Kind: upgrade.StepRestartUnit, Unit: unit, Down: rec.WasDown(unit)})
	}
	rollback = append(rollback, podsToRestart(rec)...)
	expect := backAtBaseline(rec)
	return append(rollback, upgrade.Step{Kind: upgrade.StepVerify, Expect: &expect}), notUndone
}

// crossed says that the new runtime may have started sandboxes that the old one cannot
// serve, and returns the step that stops them once more.
func crossed(rec journal.Record) (again upgrade.Step, crossed bool) {
	for i, s := range rec.Steps {
		step := rec.Operation.Plan.Steps[i]
		switch {
		case s.State == journal.StepPending:
		case s.Kind == upgrade.StepStopSandboxes:
			again = step
		case s.Kind == upgrade.StepRestartUnit && again.Kind != "" && steps.IsRuntime(step.Unit):
			again.MayBeGone = s.State != journal.StepDone
			return again, true
		}
	}
	return again, false
}

// unitsToRestart are the units whose restart was begun, and the one that was stopped
// together with the sandboxes. A member of etcd is none: nothing of it has gone back, and it is
// not restarted without the look at the others that comes before.
func unitsToRestart(rec journal.Record) []string {
	var units []string
	seen := map[string]bool{}
	stopped := ""
	for i, s := range rec.Steps {
		unit := rec.Operation.Plan.Steps[i].Unit
		switch {
		case s.State == journal.StepPending:
		case s.Kind == upgrade.StepStopSandboxes:
			stopped = steps.StoppedUnit(rec.Operation.Plan.Steps[i])
		case s.Kind == upgrade.StepRestartUnit && !seen[unit] && !steps.IsEtcd(unit):
			seen[unit] = true
			units = append(units, unit)
		}
	}
	if stopped != "" && !seen[stopped] {
		units = append(units, stopped)
	}
	return units
}

// podsToRestart are the static pods whose restart was begun: they load what is back on disk.
func podsToRestart(rec journal.Record) []upgrade.Step {
	var out []upgrade.Step
	for i, s := range rec.Steps {
		if s.Kind == upgrade.StepRestartStaticPod && s.State != journal.StepPending {
			out = append(out, upgrade.Step{Kind: s.Kind, Pod: rec.Operation.Plan.Steps[i].Pod})
		}
	}
	return out
}

func backAtBaseline(rec journal.Record) upgrade.Expectation {
	expect := upgrade.Expectation{}
	if b := rec.Baseline; b != nil {
		expect = upgrade.Expectation{Kubelet: b.Kubelet, ControlPlane: b.ControlPlane, RuntimeName: b.RuntimeName, Runtime: b.Runtime}
	}
	for i, s := range rec.Steps {
		step := rec.Operation.Plan.Steps[i]
		if s.Kind == upgrade.StepKubeadmUpgrade && s.State == journal.StepDone && step.Kubeadm.ControlPlane {
			expect.ControlPlane = "" // it stays; that is said among what was not undone
		}
		if s.Kind == upgrade.StepRestartUnit && s.State != journal.StepPending && steps.IsRuntime(step.Unit) && !rec.WasDown(step.Unit) {
			expect.StartSandbox = true
		}
		for _, back := range s.Undo {
			if back.Kind == upgrade.StepInstallPackages {
				expect.Packages = append(expect.Packages, back.Packages...)
			}
		}
	}
	return expect
}

// back undoes. A step that cannot be undone is recorded and the others still run.
func (o *operation) back(ctx context.Context) error {
	if err := o.undoAll(ctx); err != nil {
		return err
	}
	rec := o.j.Record()
	message := rec.Message
	holdErr := o.restoreHolds(context.WithoutCancel(ctx), false)
	notUndone := rec.NotUndone
	if holdErr != nil {
		notUndone = append(notUndone[:len(notUndone):len(notUndone)], "holds: "+holdErr.Error())
	}
	switch {
	case len(notUndone) > 0:
		message += "; not undone: " + steps.Tidy(strings.Join(notUndone, "; "))
	case len(rec.Rollback) == 0:
		message += "; nothing was changed on the host"
	default:
		message += strings.Join(append([]string{"; the host runs again what it ran before"}, rec.StillDown()...), "; ")
	}
	return o.j.Fail(rec.Reason, message, len(rec.Rollback) > 0 && len(notUndone) == 0)
}

func (o *operation) undoAll(ctx context.Context) error {
	deadline := time.Now().Add(o.RollbackDeadline)
	for i := o.j.Record().NextRollback(); i < len(o.j.Record().Rollback); i++ {
		if ctx.Err() != nil {
			return ErrStopped
		}
		err := o.undo(ctx, i, deadline)
		var failed *stepError
		if errors.As(err, &failed) {
			_, message := steps.Explain(o.j.Record().Rollback[i].Kind, failed.err)
			err = o.j.FailRollback(i, fmt.Sprintf("%s: %s", o.j.Record().Rollback[i].Kind, message))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *operation) undo(ctx context.Context, i int, deadline time.Time) error {
	rec := o.j.Record()
	s := rec.Rollback[i]
	left := time.Until(deadline)
	if left <= 0 {
		return &stepError{fmt.Errorf("the rollback's deadline of %s passed before", o.RollbackDeadline)}
	}
	if s.Attempts >= maxAttempts {
		return &stepError{fmt.Errorf("begun %d times and its executor ended each time", s.Attempts)}
	}
	boot, err := o.Host.Boot.ID(ctx)
	if err != nil {
		return &stepError{fmt.Errorf("reading the boot id: %w", err)}
	}
	if err := o.j.BeginRollback(i, boot); err != nil {
		return err
	}
	kind, known := steps.For(s.Kind)
	if !known {
		return &stepError{fmt.Errorf("the step is not known to this program")}
	}
	kind.Deadline = min(kind.Deadline, left)
	run := o.run(*s.Step, o.j.Record().Rollback[i], backAtBaseline(rec))
	message, err := o.do(ctx, i, kind, run)
	if err != nil {
		return err
	}
	return o.j.DoneRollback(i, message)
}
