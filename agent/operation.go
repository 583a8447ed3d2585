package agent

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// work is the operation at hand: accepted on this host, or lost by it.
type work struct {
	op      *upgrade.Operation
	record  *journal.Record // nil: accepted, not begun
	corrupt error
	// lost is a grant that was accepted and of which nothing is on record here.
	lost string

	following bool
	notBefore time.Time
	backoff   watch.Backoff
	scanned   bool
}

// open says that the work has not ended.
func (w *work) open() bool {
	return w.op != nil && w.corrupt == nil && (w.record == nil || !w.record.Finished())
}

// endedID is the operation that has ended; "" for none.
func (w *work) endedID() string {
	if w.op == nil || w.open() {
		return ""
	}
	return w.op.ID
}

func (w *work) assignmentID() string {
	if w.op == nil {
		return ""
	}
	return w.op.Plan.AssignmentID
}

// readDisk finds the operation at hand: an open one before all others, then the one
// that the API server speaks of. Disk is the truth; memory and API are not asked how it went.
func (a *Agent) readDisk(ctx context.Context) {
	w := &a.work
	if !w.scanned {
		w.scanned = a.scan(ctx)
	}
	if w.open() {
		a.readRecord(ctx, w.op.ID)
		return
	}
	for _, id := range a.spokenOf() {
		if known, err := a.Store.Known(id); err != nil || !known {
			continue
		}
		if w.op == nil || w.op.ID != id {
			a.readRecord(ctx, id)
		}
		return
	}
}

// scan looks for work that an earlier agent left. It needs no API server.
func (a *Agent) scan(ctx context.Context) bool {
	records, err := a.Store.Open()
	if err != nil {
		a.sayOnce(ctx, "journal", "Some journals cannot be read", "reason", err.Error())
	}
	if len(records) > 0 {
		a.take(ctx, records[len(records)-1].Operation.ID, &records[len(records)-1])
		return true
	}
	unbegun, err := a.Store.Unbegun()
	if err != nil {
		a.sayOnce(ctx, "operations", "Some operations cannot be read", "reason", err.Error())
	}
	if len(unbegun) > 0 {
		op := unbegun[len(unbegun)-1]
		a.work.op = &op
	}
	return true
}

// spokenOf are the operations that the API server names, the newest first.
func (a *Agent) spokenOf() []string {
	if a.machine == nil || a.newHost() {
		return nil
	}
	var ids []string
	if g := a.machine.Status.Grant; g != nil && !g.Void {
		ids = append(ids, g.ID)
	}
	if accepted := a.machine.Status.Accepted; accepted != nil {
		ids = append(ids, accepted.GrantID)
	}
	return ids
}

func (a *Agent) readRecord(ctx context.Context, id string) {
	record, err := a.Store.Journal(id)
	var corrupt *journal.CorruptError
	switch {
	case err == nil:
		a.take(ctx, id, &record)
		return
	case errors.As(err, &corrupt):
		a.sayOnce(ctx, "journal", "The journal of an operation is damaged; nothing is run from it", "operation", id, "reason", err.Error())
	case !errors.Is(err, fs.ErrNotExist):
		a.sayOnce(ctx, "journal", "The journal of an operation cannot be read", "operation", id, "reason", err.Error())
		return
	}
	op, readErr := a.Store.Operation(id)
	if readErr != nil && corrupt == nil {
		a.sayOnce(ctx, "operations", "The operation cannot be read", "operation", id, "reason", readErr.Error())
		return
	}
	op.ID = id
	a.work.op, a.work.record, a.work.corrupt = &op, nil, nil
	if corrupt != nil {
		a.work.corrupt = corrupt
	}
}

func (a *Agent) take(ctx context.Context, id string, record *journal.Record) {
	w := &a.work
	ended := w.open() && w.op.ID == id && record.Finished()
	w.op, w.record, w.corrupt = &record.Operation, record, nil
	if !ended && a.reportedEnd(id) {
		a.probing.settled = id // an earlier agent looked at the host after it
	}
	if w.lost == id {
		w.lost = ""
	}
	if ended {
		logr.FromContextOrDiscard(ctx).Info("Operation ended", "operation", id, "state", record.State, "reason", record.Reason)
	}
}

// follow makes sure that something works on an open operation, and learns when it
// stops. An executor that stops with its journal open is started again, ever more rarely.
func (a *Agent) follow(ctx context.Context) {
	w := &a.work
	if !w.open() || w.following {
		return
	}
	if a.now().Before(w.notBefore) {
		a.wakeAt(w.notBefore)
		return
	}
	w.following = true
	id := w.op.ID
	a.spawn(ctx, func(ctx context.Context) func() {
		err := a.runToEnd(ctx, id)
		return func() {
			w.following = false
			a.afterRun(ctx, id, err)
		}
	})
}

func (a *Agent) runToEnd(ctx context.Context, id string) error {
	running, err := a.Executor.Running(ctx, id)
	if err != nil {
		return err
	}
	if !running {
		// Its unit may have ended since the journal was read; a finished journal answers a start with its outcome.
		if err := a.Executor.Start(ctx, id); err != nil {
			return err
		}
	}
	return a.Executor.Wait(ctx, id)
}

func (a *Agent) afterRun(ctx context.Context, id string, err error) {
	w := &a.work
	a.readRecord(ctx, id)
	if !w.open() {
		w.backoff.Reset()
		a.spawn(ctx, func(ctx context.Context) func() {
			err := a.Executor.Release(ctx, id)
			return func() {
				if err != nil {
					a.sayOnce(ctx, "release", "The unit of an ended operation stays", "operation", id, "reason", err.Error())
				}
			}
		})
		return
	}
	w.notBefore = a.now().Add(w.backoff.Next(err))
	reason := "the executor ended with its journal open"
	if err != nil {
		reason = err.Error()
	}
	logr.FromContextOrDiscard(ctx).Info("Nothing works on the open operation, starting it again", "operation", id, "reason", reason, "next", w.notBefore)
}

// operationReport is what a report says of the operation. One that has ended is
// reported so together with facts that are younger than its end: the coordinator
// compares the two.
func (a *Agent) operationReport() *v1alpha1.Operation {
	w := &a.work
	if w.lost != "" {
		return a.lostReport()
	}
	if w.op == nil {
		return nil
	}
	var op *v1alpha1.Operation
	switch {
	case w.corrupt != nil:
		op = report.Corrupt(*w.op, w.corrupt)
	case w.record == nil:
		return report.Started(*w.op)
	default:
		op = report.Operation(*w.record, a.stageDuration())
	}
	if op.State != v1alpha1.OperationProcessing && a.probing.settled != w.op.ID && a.probing.failure == nil {
		op.State, op.Reason, op.RolledBack = v1alpha1.OperationProcessing, "", false
		op.Description = "The work has ended, looking at the host"
	}
	return op
}

// reportedEnd says that the API server has the end of an operation.
func (a *Agent) reportedEnd(id string) bool {
	if a.machine == nil {
		return false
	}
	op := a.machine.Status.LastOperation
	return op != nil && op.ID == id && op.State != v1alpha1.OperationProcessing
}

// unreported says that the API server waits for the end of the operation at hand.
func (a *Agent) unreported() bool {
	return a.work.op != nil && !a.reportedEnd(a.work.op.ID)
}

func (a *Agent) stageDuration() time.Duration {
	if a.planned.frozen != nil && a.planned.assignmentID == a.work.assignmentID() {
		return a.planned.frozen.StageDuration
	}
	return 0
}

// lostReport waits for facts that are younger than the discovery.
func (a *Agent) lostReport() *v1alpha1.Operation {
	if a.probing.answers != a.work.lost || a.probing.facts == nil {
		return nil
	}
	status := report.Status(report.State{Facts: a.probing.facts})
	kind, reached := v1alpha1.OperationUpgrade, false
	if assignment := a.machine.Status.Assignment; assignment != nil {
		kind = assignment.Type
		reached, _, _ = upgrade.PartlyUpToDate(v1alpha1.MachineTemplateSpec{Versions: &assignment.Target.Versions}, status)
		if assignment.Target.Certificates && len(upgrade.RenewalDue(a.machine.Spec, a.probing.facts.Certs, a.now())) > 0 {
			reached = false
		}
	}
	return report.Missing(a.work.lost, kind, reached)
}
