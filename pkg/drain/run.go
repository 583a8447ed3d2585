package drain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// run is one drain. One goroutine owns it; requests run beside it and report on results.
type run struct {
	*Drainer
	node            string
	start, deadline time.Time
	selector        *selector
	pods            *watched
	budgetWatch     *watched // nil until something is blocked
	snapshot        []*policyv1.PodDisruptionBudget
	entries         map[types.UID]*entry
	ignored         map[types.UID]bool
	wake            chan struct{}
	results         chan attempt
	inFlight        int
	total           int
	nextFallback    time.Time
	taken           map[string]int32
	deleted         bool  // past the deadline, by policy
	unjudged        error // why a pod that came up later could not be judged yet
	result          Result
}

// attempt is the outcome of one eviction request.
type attempt struct {
	pod *corev1.Pod
	err error
}

func (r *run) drain(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for len(r.entries) > 0 || r.inFlight > 0 || r.unjudged != nil { // an answer may come after its pod has gone
		if !time.Now().Before(r.deadline) {
			if done, err := r.expire(ctx); done || err != nil {
				return err
			}
		}
		if err := r.giveUp(); err != nil {
			return err
		}
		r.startDue(ctx)
		if err := r.await(ctx); err != nil {
			return err
		}
		if err := r.sync(ctx); err != nil {
			return err
		}
		r.explainHeld()
	}
	return nil
}

// sync brings the entries in line with the pods that the watch knows.
func (r *run) sync(ctx context.Context) error {
	present := map[types.UID]*corev1.Pod{}
	for _, pod := range listOf[*corev1.Pod](r.pods) {
		present[pod.UID] = pod
	}
	for uid, e := range r.entries {
		pod := present[uid]
		if pod == nil || finished(pod) {
			delete(r.entries, uid)
			r.emit(EventGone, e.pod, "", "")
			continue
		}
		r.refresh(e, pod)
	}
	var refused []BlockedPod
	r.unjudged = nil
	for uid, pod := range present {
		if r.entries[uid] != nil || r.ignored[uid] {
			continue
		}
		blocked, err := r.admit(ctx, pod)
		if err != nil {
			r.unjudged = err
			continue
		}
		if blocked != nil {
			refused = append(refused, *blocked)
		}
	}
	if len(refused) > 0 {
		return &Blocked{Reason: gravestReason(refused), Message: describe(refused), Permanent: true, Pods: refused}
	}
	return nil
}

// refresh takes over the pod's newest version. A pod that someone else has deleted only needs to be awaited.
func (r *run) refresh(e *entry, pod *corev1.Pod) {
	e.pod = pod
	if pod.DeletionTimestamp != nil && e.state != stateLeaving && e.state != stateEvicting {
		e.leave()
		r.result.Awaited++
	}
	if r.overdue(pod) {
		delete(r.entries, pod.UID)
		r.ignored[pod.UID] = true
		r.result.Remaining = append(r.result.Remaining, e.blocked(nil))
		r.emit(EventSkipped, pod, ReasonPodsTerminating, "its deletion is overdue; no longer waited for")
	}
}

func (r *run) overdue(pod *corev1.Pod) bool {
	limit := r.opts.SkipWaitForDeleteTimeout
	return limit > 0 && pod.DeletionTimestamp != nil && time.Since(pod.DeletionTimestamp.Time) > limit
}

// admit judges a pod that is new to this drain.
func (r *run) admit(ctx context.Context, pod *corev1.Pod) (*BlockedPod, error) {
	verdict, reason, message, err := r.selector.judge(ctx, pod)
	if err != nil {
		return nil, fmt.Errorf("judging pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	e := &entry{pod: pod, since: time.Now()}
	switch verdict {
	case verdictIgnore:
		r.ignored[pod.UID] = true
		return nil, nil
	case verdictRefuse:
		e.hold(reason, message)
		b := e.blocked(nil)
		return &b, nil
	case verdictWait:
		e.leave()
		r.result.Awaited++
	case verdictEvict:
		e.state = stateQueued
	}
	r.entries[pod.UID] = e
	r.total++
	r.refresh(e, pod)
	return nil, nil
}

// startDue sends the evictions that may succeed now.
func (r *run) startDue(ctx context.Context) {
	now := time.Now()
	room := &allowance{budgets: r.budgets(), fresh: r.budgetWatch != nil && r.budgetWatch.hasSynced(), taken: r.taken}
	fallback := !now.Before(r.nextFallback)
	othersLeft := r.othersLeft()
	for _, e := range r.ordered() {
		if r.inFlight >= maxInFlight {
			return
		}
		if !othersLeft && r.opts.EvictLast(e.pod) {
			continue
		}
		due := e.state == stateQueued || (e.state == stateBlocked && !e.next.IsZero() && !now.Before(e.next))
		if !due && e.heldByBudget() {
			due = room.take(e)
			if !due && fallback {
				due, fallback = true, false
			}
		}
		if due {
			r.send(ctx, e, room)
		}
	}
}

// othersLeft says that only pods that go last are still here.
func (r *run) othersLeft() bool {
	for _, e := range r.entries {
		if !r.opts.EvictLast(e.pod) {
			return false
		}
	}
	return true
}

func (r *run) send(ctx context.Context, e *entry, room *allowance) {
	if e.heldByBudget() {
		r.nextFallback = time.Now().Add(jitter(r.pace.fallback))
	}
	e.state, e.tried = stateEvicting, time.Now()
	e.triedBudget, e.triedReady = room.version(e.pod), ready(e.pod)
	r.inFlight++
	r.result.Requests++
	pod := e.pod
	go func() { r.results <- attempt{pod, evict(ctx, r.client, pod)} }() // never blocks: as many places as requests
}

// await sleeps until something has happened that startDue may act on.
func (r *run) await(ctx context.Context) error {
	timer := time.NewTimer(time.Until(r.alarm()))
	defer timer.Stop()
	var denied <-chan error
	if r.budgetWatch != nil {
		denied = r.budgetWatch.denied
	}
	select {
	case <-r.wake:
	case <-timer.C:
	case a := <-r.results:
		return r.settle(ctx, a)
	case err := <-r.pods.denied:
		return missingPermission(err)
	case err := <-denied:
		return missingPermission(err)
	case <-ctx.Done():
		return fmt.Errorf("draining node %s: %w", r.node, ctx.Err())
	}
	return nil
}

// alarm is the earliest time at which the clock alone changes something.
func (r *run) alarm() time.Time {
	at := r.deadline
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if r.unjudged != nil {
		sooner(time.Now().Add(r.pace.first))
	}
	for _, e := range r.entries {
		switch {
		case e.heldByBudget():
			sooner(r.nextFallback)
			if at := r.hopelessAt(e); !at.IsZero() {
				sooner(at)
			}
		case e.state == stateBlocked:
			sooner(e.next)
		case e.state == stateLeaving && e.pod.DeletionTimestamp != nil && r.opts.SkipWaitForDeleteTimeout > 0:
			sooner(e.pod.DeletionTimestamp.Add(r.opts.SkipWaitForDeleteTimeout + time.Millisecond))
		}
	}
	return at
}

// expire applies the policy for the deadline. Done means that the drain ends here without an error.
func (r *run) expire(ctx context.Context) (done bool, err error) {
	switch {
	case len(r.entries) == 0:
		return true, r.unjudged
	case r.opts.OnTimeout == ActionProceed:
		r.result.Remaining = append(r.result.Remaining, r.remaining()...)
		return true, nil
	case r.opts.OnTimeout == ActionDelete && !r.deleted:
		r.deleted = true
		return false, r.deleteRemaining(ctx)
	}
	return false, r.stillThere(r.remaining())
}

func (r *run) stillThere(pods []BlockedPod) *Blocked {
	return &Blocked{
		Reason:  gravestReason(pods),
		Message: fmt.Sprintf("%d of %d pods are still on node %s after %s: %s", len(r.entries), r.total, r.node, time.Since(r.start).Round(time.Second), describe(pods)),
		Pods:    pods,
	}
}

func (r *run) remaining() []BlockedPod {
	budgets := r.budgets()
	out := make([]BlockedPod, 0, len(r.entries))
	for _, e := range r.ordered() {
		out = append(out, e.blocked(namesOf(matching(e.pod, budgets))))
	}
	return out
}

// deleteRemaining deletes what budgets held until the deadline, and moves the
// deadline by the longest grace period among them.
func (r *run) deleteRemaining(ctx context.Context) error {
	grace := time.Duration(0)
	var errs []error
	for _, e := range r.ordered() {
		if s := e.pod.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = max(grace, time.Duration(*s)*time.Second)
		}
		if e.state == stateLeaving {
			continue
		}
		if err := deletePod(ctx, r.client, e.pod); err != nil {
			errs = append(errs, fmt.Errorf("after the drain's deadline: %w", err))
			continue
		}
		e.leave()
		r.result.Deleted++
		r.emit(EventDeleted, e.pod, "", "deleted past its budget: the drain's timeout is over and its policy is Delete")
	}
	r.deadline = time.Now().Add(grace + r.pace.afterDelete)
	return errors.Join(errs...)
}

func jitter(d time.Duration) time.Duration { return d + time.Duration(rand.Int64N(int64(d)*2/5+1)) }
