package agent

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// decide applies the rules of package accept to the grant. Not while a write is on its
// way: it may be the acceptance itself, and the watch may tell of it before its answer does.
func (a *Agent) decide(ctx context.Context) {
	if a.reporting.running {
		return
	}
	a.reporting.grantFailure = nil
	a.work.lost = ""
	if a.machine == nil {
		return
	}
	d := accept.Decide(a.situation())
	log := logr.FromContextOrDiscard(ctx).WithValues("grant", d.GrantID)
	switch d.Action {
	case accept.Accept:
		a.accept(ctx, log)
	case accept.Resume:
		a.resume(ctx, log, d.GrantID)
	case accept.Lost:
		a.work.lost = d.GrantID
		a.sayOnce(ctx, "lost", "A grant was accepted of which nothing is on record here; looking at the host", "grant", d.GrantID)
		a.probe(ctx)
	case accept.Refuse:
		a.refuse(ctx, d)
	}
}

func (a *Agent) situation() accept.Situation {
	s := accept.Situation{
		Status: a.machine.Status, Epoch: a.epoch, Hold: a.hold(), Lock: a.lock.holder, BootID: a.BootID,
		// What nobody can say is taken for known: it is then followed, and never run.
		Known:  func(id string) bool { known, err := a.Store.Known(id); return known || err != nil },
		Intent: a.intent,
	}
	if a.newHost() {
		s.Known = func(string) bool { return false }
	}
	if assignment := a.assignment(); assignment != nil && a.planned.frozen != nil && a.planned.assignmentID == assignment.ID {
		s.Plan = &a.planned.frozen.Plan
	}
	if a.work.open() {
		s.Running = a.work.op.ID
	}
	return s
}

func (a *Agent) intent(grantID string) *store.Intent {
	intent, err := a.Store.Intent(grantID)
	if err != nil {
		return nil
	}
	return &intent
}

func (a *Agent) hold() *upgrade.HoldFacts {
	if a.Hold == nil {
		return nil
	}
	return a.Hold()
}

// accept sends the acceptance with the version that carried the grant. It is a write
// like any other, so it waits for one that is on its way.
func (a *Agent) accept(ctx context.Context, log logr.Logger) {
	if a.machine.DeletionTimestamp != nil || a.newHost() || !a.mayWrite() {
		return
	}
	grant := a.machine.Status.Grant
	state := a.reportState()
	state.Accepted = grant.ID
	op := upgrade.Operation{ID: grant.ID, Machine: a.machine.Name, Plan: a.planned.frozen.Plan}
	request := accept.Request{
		Operation: op, BootID: a.BootID, Status: a.statusOf(state), ResourceVersion: a.machine.ResourceVersion,
	}
	a.write(ctx, func(ctx context.Context) (*v1alpha1.Machine, error) {
		machine, err := a.acceptor.Accept(ctx, request)
		if err == nil {
			log.Info("Accepted the grant", "assignment", op.Plan.AssignmentID)
		}
		return machine, err
	})
}

// resume goes on after a crash between the acceptance and the hand-over.
func (a *Agent) resume(ctx context.Context, log logr.Logger, grantID string) {
	intent := a.intent(grantID)
	if intent == nil {
		return
	}
	if err := a.Store.SaveOperation(intent.Operation); err != nil {
		a.sayOnce(ctx, "resume", "Handing an accepted operation to the executor failed", "grant", grantID, "reason", err.Error())
		a.wakeAt(a.now().Add(a.Timing.Retry))
		return
	}
	log.Info("The acceptance of the grant had arrived, going on")
	a.readRecord(ctx, grantID)
}

// refuse tells of a refusal that somebody can do something about. The grant of an
// older coordinator is none of them: a newer one speaks for itself.
func (a *Agent) refuse(ctx context.Context, d accept.Decision) {
	a.sayOnce(ctx, "refuse", "Refused a grant: "+d.Reason, "grant", d.GrantID, "message", d.Message)
	if d.Reason == accept.ReasonStaleEpoch || d.Reason == accept.ReasonOperationRunning {
		return
	}
	a.reporting.grantFailure = &v1alpha1.Failure{Reason: d.Reason, Message: d.Message}
}
