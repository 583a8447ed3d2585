package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/agent/host/waiting"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// maxAttempts bounds how often one step is begun: a step that kills its executor each
// time is not run for ever.
const maxAttempts = 3

// operation is one journal being driven to its outcome.
type operation struct {
	*Executor
	j *journal.Journal
}

// stepError is a failure of a step, as opposed to one of the journal.
type stepError struct{ err error }

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func (o *operation) drive(ctx context.Context) error {
	err := o.passes(ctx)
	if err != nil && !o.j.Record().Finished() {
		// Leaving with an open journal: the owner's holds are put back until the resume.
		err = errors.Join(err, o.restoreHolds(context.WithoutCancel(ctx), false))
	}
	return err
}

func (o *operation) passes(ctx context.Context) error {
	if err := o.prepare(ctx); err != nil {
		return err
	}
	if !o.j.Record().RollingBack {
		if err := o.forward(ctx); err != nil {
			return err
		}
	}
	if !o.j.Record().RollingBack {
		return o.j.Succeed()
	}
	return o.back(ctx)
}

// prepare validates and records the baseline, once; a resume takes the holds off again
// that the stop before it put back.
func (o *operation) prepare(ctx context.Context) error {
	rec := o.j.Record()
	if rec.Baseline != nil {
		return o.reopenHolds(ctx)
	}
	if rec.RollingBack {
		return nil
	}
	if err := Validate(rec.Operation); err != nil {
		return o.refuse("OperationInvalid", err)
	}
	if boot, err := o.Host.Boot.ID(ctx); err != nil || boot != rec.BootID {
		return o.refuse("HostRebooted", errors.Join(errors.New("the host was rebooted before the first step: a new plan is needed"), err))
	}
	facts, err := o.Host.Facts.Facts(ctx, steps.Touched(rec.Operation.Plan))
	if ctx.Err() != nil {
		return ErrStopped
	}
	if err != nil {
		return o.refuse("FactsUnavailable", fmt.Errorf("reading the facts of the host: %w", err))
	}
	facts.Policy = o.Host.Policy.Read()
	if blocked := upgrade.IsBlocked(upgrade.JudgePlan(facts, rec.Operation.Plan)); blocked != nil {
		return o.refuse(blocked.Reason, errors.New(blocked.Message))
	}
	before := baseline(facts, steps.Touched(rec.Operation.Plan))
	host := o.Host
	before.Down = steps.Down(ctx, &host, rec.Operation.Plan, o.Poll)
	if ctx.Err() != nil {
		return ErrStopped
	}
	if slices.ContainsFunc(rec.Operation.Plan.Steps, func(s upgrade.Step) bool {
		return s.Down && s.Unit == steps.KubeletUnit && slices.Contains(before.Down, s.Unit)
	}) {
		before.Kubelet = "" // one that fails again and again was met while it had a process
	}
	return o.j.SetBaseline(before)
}

// refuse ends an operation before its first step.
func (o *operation) refuse(reason string, err error) error {
	return o.j.Turn(len(o.j.Record().Steps), journal.Cause{Reason: reason, Message: steps.Tidy(err.Error())}, nil, nil)
}

// baseline keeps what is understood: a version that is not could never be found again.
func baseline(f upgrade.Facts, touched []string) journal.Baseline {
	b := journal.Baseline{}
	if f.Kubelet != nil && upgrade.SameKubernetes(f.Kubelet.Running, f.Kubelet.Running) {
		b.Kubelet = f.Kubelet.Running
	}
	if f.Runtime != nil && upgrade.SameRuntime(f.Runtime.Running, f.Runtime.Running) {
		b.RuntimeName, b.Runtime = f.Runtime.Name, f.Runtime.Running
	}
	if f.Control != nil && upgrade.SameKubernetes(f.Control.APIServer, f.Control.APIServer) {
		b.ControlPlane = f.Control.APIServer
	}
	held := set(f.Packages.Holds)
	for _, name := range touched {
		if held[name] {
			b.Holds = append(b.Holds, name)
		}
	}
	return b
}

// forward runs steps until all are done, or turns round at the first that fails.
func (o *operation) forward(ctx context.Context) error {
	for i := o.j.Record().Next(); i < len(o.j.Record().Steps); i++ {
		if ctx.Err() != nil {
			return ErrStopped
		}
		err := o.forwardStep(ctx, i)
		var failed *stepError
		if errors.As(err, &failed) {
			return o.turn(i, failed.err)
		}
		if err != nil {
			return err
		}
	}
	if err := o.restoreHolds(context.WithoutCancel(ctx), true); err != nil {
		return o.turn(len(o.j.Record().Steps), err)
	}
	return nil
}

func (o *operation) forwardStep(ctx context.Context, i int) error {
	rec := o.j.Record()
	step, done := rec.Operation.Plan.Steps[i], rec.Steps[i]
	step.Down = step.Down && rec.WasDown(step.Unit) // one that came up since the plan was made is to stay up
	if done.Attempts >= maxAttempts {
		return &stepError{fmt.Errorf("%s was begun %d times and its executor ended each time", step.Kind, done.Attempts)}
	}
	kind, known := steps.For(step.Kind)
	if !known { // Validate lets none begin, but this may be the program of an earlier version that was put back
		return &stepError{fmt.Errorf("the step %s is not known to this program", step.Kind)}
	}
	run := o.run(step, done, expectAfter(rec.Operation.Plan, i))
	undo := journal.Undo{}
	if kind.Capture != nil && done.Start == nil {
		var err error
		if undo, err = kind.Capture(context.WithoutCancel(ctx), run); err != nil {
			return &stepError{fmt.Errorf("capturing what undoes %s: %w", step.Kind, err)}
		}
	}
	boot, err := o.Host.Boot.ID(ctx)
	if err != nil {
		return &stepError{fmt.Errorf("reading the boot id: %w", err)}
	}
	if err := o.j.Begin(i, boot, undo); err != nil {
		return err
	}
	run.Index = i
	run.Attempt, run.BeganInBoot = o.j.Record().Steps[i].Attempts, o.j.Record().Steps[i].BootID
	message, err := o.do(ctx, i, kind, run)
	if err != nil {
		return err
	}
	return o.j.Done(i, message)
}

// expectAfter is what must run after step i: what the plan verifies at its end, unless
// the same unit is restarted again before.
func expectAfter(p upgrade.Plan, i int) upgrade.Expectation {
	for _, later := range p.Steps[i+1:] {
		if p.Steps[i].Kind == upgrade.StepRestartUnit && later.Kind == upgrade.StepRestartUnit && later.Unit == p.Steps[i].Unit {
			return upgrade.Expectation{}
		}
	}
	return steps.ExpectationOf(p)
}

func (o *operation) run(step upgrade.Step, s journal.StepRecord, expect upgrade.Expectation) steps.Run {
	host := o.Host
	dir := host.StageDir
	if o.j.Record().RollingBack {
		dir = host.BackupDir
	}
	return steps.Run{
		Machine: o.j.Record().Operation.Machine, Operation: o.j.Record().Operation.ID,
		Host: &host, Step: step, Attempt: s.Attempts, BeganInBoot: s.BootID, Plan: o.j.Record().Operation.Plan,
		Expect: expect, Held: held(o.j.Record()), PackageDir: dir, Poll: o.Poll,
	}
}

// do runs one step under its deadline. A stop request reaches only steps that can be cut short.
func (o *operation) do(ctx context.Context, i int, kind steps.Kind, run steps.Run) (string, error) {
	log := logr.FromContextOrDiscard(ctx).WithValues("step", run.Step.Kind, "index", i, "attempt", run.Attempt)
	if kind.UsesUnits {
		o.release.Do(o.releaseUnits)
	}
	stepCtx := context.WithoutCancel(ctx)
	if kind.Interruptible {
		stepCtx = ctx
	}
	deadline := kind.Deadline
	if o.DeadlineCap > 0 {
		deadline = min(deadline, o.DeadlineCap)
	}
	stepCtx, cancel := context.WithTimeout(stepCtx, deadline)
	defer cancel()
	stepCtx = waiting.NewContext(stepCtx, o.teller(ctx, i))
	log.Info("Starting step")
	begun := time.Now()
	message, err := kind.Do(stepCtx, run)
	switch took := time.Since(begun).String(); {
	case err == nil:
		log.Info("Step done", "duration", took, "message", message)
		return message, nil
	case kind.Interruptible && ctx.Err() != nil:
		log.Info("Step cut short", "duration", took)
		if kind.Counted {
			return "", ErrStopped
		}
		return "", errors.Join(ErrStopped, o.j.Interrupt(i))
	default:
		log.Error(err, "Step failed", "duration", took)
		return "", &stepError{err}
	}
}

// teller keeps in the journal what a step waits for: the agent reads it there. It is
// for people, so a journal that cannot be written is left to the end of the step.
func (o *operation) teller(ctx context.Context, i int) func(what string) {
	last := ""
	return func(what string) {
		if what == last {
			return
		}
		last = what
		if err := o.j.Note(i, what); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "What a step waits for could not be recorded", "index", i, "what", what)
		}
	}
}
