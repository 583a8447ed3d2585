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
	// lockLook is how often the package lock is looked at while a plan waits for its grant,
	// besides each time that something else happens and once it is given up; one that is
	// held and cannot be watched is looked at more often at first.
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
	// released is closed when the holder has given it up; nil while nothing is watched.
	released <-chan struct{}
	unwatch  context.CancelFunc
}

// PackageLock looks at the package manager's lock of the host under root.
func PackageLock(root string) func() (*upgrade.LockFacts, error) {
	return func() (*upgrade.LockFacts, error) { return packagelock.Holder(root) }
}

// LockReleased tells of the release of a lock of the host under root.
func LockReleased(root string) func(context.Context, upgrade.LockFacts) (<-chan struct{}, error) {
	return func(ctx context.Context, seen upgrade.LockFacts) (<-chan struct{}, error) {
		return packagelock.Released(ctx, root, seen)
	}
}

// lookAtLock looks at the lock while it matters: a plan waits for its grant. One that is
// held is watched until its release; nothing is watched at other times. A lock that
// cannot be looked at does not hold the host back: the executor looks once more, before
// its first step.
func (a *Agent) lookAtLock(ctx context.Context) {
	l := &a.lock
	if a.PackageLock == nil || !a.awaitsGrant() {
		l.stopWatching()
		*l = lock{backoff: l.backoff}
		return
	}
	holder, err := a.PackageLock()
	if err != nil {
		a.sayOnce(ctx, "lock", "The package lock cannot be looked at", "reason", err.Error())
	}
	now := a.now()
	if holder == nil {
		l.stopWatching()
		l.backoff.Reset()
		*l = lock{backoff: l.backoff, next: now.Add(lockLook)}
		a.wakeAt(l.next)
		return
	}
	if l.holder == nil {
		l.since, l.next = now, now
	}
	if l.released == nil || *l.holder != *holder {
		a.watchLock(ctx, *holder)
	}
	if !now.Before(l.next) {
		l.next = now.Add(a.lockPause())
	}
	l.holder = holder
	l.told = l.told || !a.beingDrained() || now.Sub(l.since) >= lockPatience
	a.wakeAt(l.next)
}

// lockPause is until when a lock that is held is looked at again, though nobody tells of its release.
func (a *Agent) lockPause() time.Duration {
	if a.lock.released != nil {
		return lockLook
	}
	return a.lock.backoff.Next(nil)
}

// watchLock asks to be told of the release. Where that cannot be had the lock is looked at more often.
func (a *Agent) watchLock(ctx context.Context, holder upgrade.LockFacts) {
	l := &a.lock
	l.stopWatching()
	if a.LockReleased == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	released, err := a.LockReleased(ctx, holder)
	if err != nil {
		cancel()
		a.sayOnce(ctx, "lock", "The package lock cannot be watched", "reason", err.Error())
		return
	}
	l.released, l.unwatch, l.next = released, cancel, time.Time{}
}

func (l *lock) stopWatching() {
	if l.unwatch != nil {
		l.unwatch()
	}
	l.released, l.unwatch = nil, nil
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
