package agent

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/outage"
)

// reporting is the one write that may be on its way, and when the next may be sent.
type reporting struct {
	running      bool
	last         time.Time
	notBefore    time.Time
	backoff      watch.Backoff
	grantFailure *v1alpha1.Failure
}

// report writes the status when it differs from what the API server has. Nothing that
// waits to be written is kept: it is computed from the disk and the host each time, so
// an outage of any length, or a restart within it, loses nothing.
func (a *Agent) report(ctx context.Context) {
	if a.machine == nil || !a.worthSaying() || !a.mayWrite() {
		return
	}
	status := a.statusOf(a.reportState())
	due, ok := report.Due(report.Compare(a.machine.Status, status), status, a.reporting.last)
	if !ok {
		return
	}
	if a.now().Before(due) {
		a.wakeAt(due)
		return
	}
	version := a.machine.ResourceVersion
	a.write(ctx, func(ctx context.Context) (*v1alpha1.Machine, error) {
		return a.API.ApplyStatus(ctx, status, version)
	})
}

// worthSaying: the first report waits for the first look at the host, or for its failure.
func (a *Agent) worthSaying() bool {
	return a.probing.facts != nil || a.probing.failure != nil || a.work.open()
}

func (a *Agent) mayWrite() bool {
	if a.reporting.running {
		return false
	}
	if a.now().Before(a.reporting.notBefore) {
		a.wakeAt(a.reporting.notBefore)
		return false
	}
	return true
}

func (a *Agent) reportState() report.State {
	s := report.State{
		Base: a.machine.Status, Generation: a.machine.Generation, Spec: a.machine.Spec,
		Facts: a.probing.facts, Planning: a.planningReport(), Operation: a.operationReport(),
		Passed:  a.passed(),
		Failure: a.failure(), Epoch: a.epoch, Held: a.hold(), Lock: a.lockReport(),
		Security: a.securityReport(), Kept: a.probing.kept, Snapshot: a.snapshot(), Rebooted: a.probing.rebooted, NewHost: a.newHost(), Now: a.now(),
	}
	if a.work.op != nil {
		s.Accepted = a.work.op.ID
	}
	if a.work.lost != "" {
		s.Accepted = a.work.lost
	}
	if a.work.open() || !a.settled() {
		s.Facts = nil // what is seen during the work is neither the host before nor the host after
	}
	return s
}

// snapshot of etcd that is on record here, also of the operation that goes on.
func (a *Agent) snapshot() *v1alpha1.EtcdSnapshot {
	if a.Store == nil {
		return nil
	}
	return a.Store.EtcdSnapshot()
}

// settled says that the facts are younger than the end of the operation at hand.
func (a *Agent) settled() bool { return a.probing.settled == a.work.endedID() }

func (a *Agent) statusOf(s report.State) v1alpha1.MachineStatus { return report.Status(s) }

// failure is why the host cannot go on, apart from a refused plan, which says so itself.
func (a *Agent) failure() *v1alpha1.Failure {
	if a.reporting.grantFailure != nil {
		return a.reporting.grantFailure
	}
	if err := a.probing.failure; err != nil {
		return &v1alpha1.Failure{Reason: planning.ReasonProbeFailed, Message: err.Error(), Attempts: int32(a.probing.backoff.Failures())}
	}
	return nil
}

// write sends one status. What the API server answers is the new view of the Machine;
// after a conflict it is read again, and everything is decided anew.
func (a *Agent) write(ctx context.Context, send func(ctx context.Context) (*v1alpha1.Machine, error)) {
	r := &a.reporting
	r.running = true
	a.spawn(ctx, func(ctx context.Context) func() {
		machine, err := send(ctx)
		fresh := machine
		if apierrors.IsConflict(err) {
			fresh, _ = a.API.Get(ctx) // when this fails too, the watch brings the change
		}
		return func() {
			r.running = false
			a.see(fresh, false)
			a.afterWrite(ctx, err)
		}
	})
}

func (a *Agent) afterWrite(ctx context.Context, err error) {
	r := &a.reporting
	if a.Reported != nil {
		a.Reported(err)
	}
	switch {
	case err == nil:
		r.last = a.now()
		r.backoff.Reset()
		a.sayOnce(ctx, "write", "Status is written")
	case apierrors.IsConflict(err) && r.backoff.Failures() == 0:
		r.backoff.Next(err) // the view is fresh now: once at once, then with pauses
	default:
		r.notBefore = a.now().Add(r.backoff.Next(err))
		a.sayOnce(ctx, "write", "Writing the status failed, trying again: nothing is lost, what arrives is how the host is then", "reason", outage.Text(err))
	}
}
