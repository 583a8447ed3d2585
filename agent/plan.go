package agent

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
)

// planned is how far the plan for the assignment is.
type planned struct {
	assignmentID string
	frozen       *store.FrozenPlan
	refused      *v1alpha1.Failure
	generation   int64
	retry        string // the retry annotation that was honoured
	notBefore    time.Time
	attempts     int32
	backoff      watch.Backoff

	running bool
	cancel  context.CancelFunc
}

// plan makes a plan for an assignment that has none. A frozen plan stays until there is
// another assignment; a refused one is tried again when its reason may have passed.
func (a *Agent) plan(ctx context.Context) {
	assignment := a.assignment()
	p := &a.planned
	if assignment == nil {
		return
	}
	if p.assignmentID != assignment.ID {
		a.turnTo(ctx, assignment)
	}
	if p.running || p.frozen != nil || a.probing.running || a.passing.running || a.work.open() || a.stale(ctx, assignment) || !a.tryAgain() {
		return
	}
	a.startPlan(ctx, assignment.ID)
}

// assignment is the one to plan for; nil for none.
func (a *Agent) assignment() *v1alpha1.Assignment {
	if a.machine == nil || a.machine.DeletionTimestamp != nil {
		return nil
	}
	return a.machine.Status.Assignment
}

// stale says that an older coordinator than the newest seen made the assignment. A plan
// that was frozen for it before stays good: a new coordinator may grant it.
func (a *Agent) stale(ctx context.Context, assignment *v1alpha1.Assignment) bool {
	if assignment.Epoch >= a.machine.Status.ObservedEpoch {
		return false
	}
	a.sayOnce(ctx, "stale", "The assignment is of an older coordinator, not planning for it", "assignment", assignment.ID)
	return true
}

// turnTo leaves the plan of an earlier assignment for another's, which may be on disk already.
func (a *Agent) turnTo(ctx context.Context, assignment *v1alpha1.Assignment) {
	p := &a.planned
	if p.cancel != nil {
		p.cancel()
	}
	*p = planned{
		assignmentID: assignment.ID, generation: assignment.Generation, retry: a.retryMark(),
		backoff: a.newBackoff(), running: p.running,
	}
	frozen, err := a.Store.Plan(assignment.ID)
	switch {
	case err == nil:
		p.frozen = &frozen
	case !errors.Is(err, fs.ErrNotExist):
		a.sayOnce(ctx, "plan", "The frozen plan cannot be read, planning anew", "assignment", assignment.ID, "reason", err.Error())
	}
}

// tryAgain says whether a refused plan is worth another try now.
func (a *Agent) tryAgain() bool {
	p := &a.planned
	if p.refused == nil {
		return true
	}
	if p.retry != a.retryMark() {
		p.retry, p.attempts = a.retryMark(), 0
		p.backoff.Reset()
		return true
	}
	if p.refused.Terminal {
		return false
	}
	a.wakeAt(p.notBefore)
	return !a.now().Before(p.notBefore)
}

func (a *Agent) retryMark() string { return a.machine.Annotations[v1alpha1.AnnotationRetry] }

func (a *Agent) startPlan(ctx context.Context, assignmentID string) {
	p := &a.planned
	p.running = true
	ctx, p.cancel = context.WithCancel(ctx)
	machine := a.machine.DeepCopy()
	packages := planning.PackageNames(machine.Spec) // what the plan looks at
	log := logr.FromContextOrDiscard(ctx).WithValues("assignment", assignmentID)
	log.Info("Planning")
	start, cancel := a.now(), p.cancel
	a.spawn(ctx, func(ctx context.Context) func() {
		outcome := a.planner.Plan(ctx, machine)
		return func() {
			p.running = false
			cancel()
			if outcome.Facts != nil {
				a.learn(*outcome.Facts, packages)
			}
			if outcome.Security != nil {
				a.learnUpdates(ctx, *outcome.Security)
			}
			if p.assignmentID != assignmentID {
				log.Info("Dropped the plan of an assignment that was replaced")
				return
			}
			a.finishPlan(log.WithValues("duration", a.now().Sub(start).String()), outcome)
		}
	})
}

func (a *Agent) finishPlan(log logr.Logger, outcome planning.Outcome) {
	p := &a.planned
	if outcome.Frozen != nil {
		p.frozen, p.refused = outcome.Frozen, nil
		log.Info("Plan staged and frozen", "hash", p.frozen.Plan.Hash, "disruption", p.frozen.Plan.Disruption, "steps", len(p.frozen.Plan.Steps))
		return
	}
	p.attempts++
	failure := *outcome.Refused
	failure.Attempts = p.attempts
	if !failure.Terminal {
		p.notBefore = a.now().Add(p.backoff.Next(nil))
		next := metav1.NewTime(p.notBefore.Truncate(time.Second))
		failure.NextRetryTime = &next
	}
	p.refused = &failure
	log.Info("There is no plan", "reason", failure.Reason, "message", failure.Message, "terminal", failure.Terminal)
}

// planningReport is what a report says of the plan.
func (a *Agent) planningReport() *report.Planning {
	p := &a.planned
	if a.machine == nil || a.machine.Status.Assignment == nil || p.assignmentID != a.machine.Status.Assignment.ID {
		return nil
	}
	out := &report.Planning{AssignmentID: p.assignmentID, Generation: p.generation, Refused: p.refused}
	if p.frozen != nil {
		out.Plan = &p.frozen.Plan
	}
	return out
}
