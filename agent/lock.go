package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-dev/refit/agent/host/packagelock"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// lockLook is how often a free package lock is looked at while a plan waits for its
	// grant, besides each time that something else happens; one that is held is looked at
	// as often at least.
	lockLook = time.Minute
	// lockPatience is how long the lock may be held, once the node is being drained for
	// the plan, before it is told: a node is not given back for what a script does in seconds.
	lockPatience = time.Minute
)

// lock is what is known of the package manager's lock while a plan waits for its grant.
type lock struct {
	holder  *upgrade.LockFacts
	since   time.Time // when it was first seen held, and at each look since
	told    bool
	next    time.Time
	backoff watch.Backoff
}

// PackageLock looks at the package manager's lock of the host under root.
func PackageLock(root string) func() (*upgrade.LockFacts, error) {
	return func() (*upgrade.LockFacts, error) { return packagelock.Holder(root) }
}

// lookAtLock looks at the lock while it matters: a plan waits for its grant. Nobody tells
// of its release (closing the file is not watched). A lock that cannot be looked at does not hold the host
// back: the executor looks once more, before its first step.
func (a *Agent) lookAtLock(ctx context.Context) {
	l := &a.lock
	if a.PackageLock == nil || !a.awaitsGrant() {
		*l = lock{backoff: l.backoff}
		return
	}
	holder, err := a.PackageLock()
	if err != nil {
		a.sayOnce(ctx, "lock", "The package lock cannot be looked at", "reason", err.Error())
	}
	now := a.now()
	switch {
	case holder == nil:
		l.backoff.Reset()
		*l = lock{backoff: l.backoff, next: now.Add(lockLook)}
	case l.holder == nil:
		l.since, l.next = now, now.Add(l.backoff.Next(nil))
	case !now.Before(l.next):
		l.next = now.Add(l.backoff.Next(nil))
	}
	l.holder = holder
	l.told = holder != nil && (l.told || !a.beingDrained() || now.Sub(l.since) >= lockPatience)
	a.wakeAt(l.next)
}

// awaitsGrant says that a plan is frozen here whose grant has not been accepted.
func (a *Agent) awaitsGrant() bool {
	assignment := a.assignment()
	return assignment != nil && a.planned.frozen != nil && a.planned.assignmentID == assignment.ID &&
		a.work.assignmentID() != assignment.ID && !a.work.open()
}

// beingDrained says that the coordinator has begun to clear the node for the plan, or has done so.
func (a *Agent) beingDrained() bool {
	return meta.FindStatusCondition(a.machine.Status.Conditions, v1alpha1.ConditionDrained) != nil
}

// lockReport is what is told of the lock.
func (a *Agent) lockReport() *report.Lock {
	if !a.lock.told {
		return nil
	}
	return &report.Lock{Holder: *a.lock.holder, Since: a.lock.since}
}
