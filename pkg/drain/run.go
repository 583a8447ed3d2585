package drain

import (
	"context"
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
	budgets         *watched // shared with other drains
	entries         map[types.UID]*entry
	ignored         map[types.UID]bool
	wake            chan struct{}
	results         chan attempt
	inFlight        int
	total           int
	begun           bool      // pods may have been evicted: what comes from now on came in the middle of the drain
	notBefore       time.Time // of the first eviction
	nextFallback    time.Time
	health          nodeState
	deleted         bool  // past the deadline, by policy; what was left then is doomed
	unjudged        error // why a pod that came up later could not be judged yet
	returns         returns
	result          Result
}

// attempt is the outcome of one eviction request.
type attempt struct {
	pod *corev1.Pod
	err error
}

func (r *run) drain(ctx context.Context) error {
	defer r.join(ctx)()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.begun = true
	r.leaveLoadBalancers()
	for len(r.entries) > 0 || r.inFlight > 0 || r.unjudged != nil { // an answer may come after its pod has gone
		if !time.Now().Before(r.deadline) {
			if done, err := r.expire(); err != nil {
				return err
			} else if done {
				break
			}
		}
		if err := r.giveUp(); err != nil {
			return err
		}
		r.holdVain()
		r.startDue(ctx)
		r.deleteDue(ctx)
		if err := r.await(ctx); err != nil {
			return err
		}
		if err := r.sync(ctx); err != nil {
			return err
		}
		r.explainHeld()
		r.watchOver(ctx)
	}
	return r.awaitVolumes(ctx)
}

// leaveLoadBalancers gives those who balance load from outside the time to see the
// node's label, while all of its pods still serve.
func (r *run) leaveLoadBalancers() {
	if r.opts.LoadBalancerDelay <= 0 || len(r.entries) == 0 {
		return
	}
	r.notBefore = time.Now().Add(r.opts.LoadBalancerDelay)
	r.say(EventWaiting, ReasonLoadBalancers, fmt.Sprintf(
		"load balancers have %s to leave node %s out before its first pod is evicted", r.opts.LoadBalancerDelay, r.node))
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
		r.refresh(ctx, e, pod)
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
func (r *run) refresh(ctx context.Context, e *entry, pod *corev1.Pod) {
	e.pod = pod
	r.reconsider(ctx, e)
	if pod.DeletionTimestamp != nil && e.state != stateLeaving && e.state != stateEvicting {
		e.leave()
		r.result.Awaited++
		if e.doomed { // someone else could delete it after all
			r.allowFor(e)
		}
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
	order, unreadable := orderOf(pod)
	if e.order = order; r.opts.EvictLast(pod) {
		e.order = ownOrder
	}
	switch verdict {
	case verdictIgnore:
		r.ignored[pod.UID] = true
		return nil, nil
	case verdictRefuse:
		if !r.begun || reason == ReasonMissingPermission { // nothing is lost yet; or no pod can help it
			e.hold(reason, message)
			b := e.blocked(nil)
			return &b, nil
		}
		e.refused = true
	case verdictWait:
		e.leave()
		r.result.Awaited++
	case verdictEvict:
		e.state = stateQueued
	}
	r.entries[pod.UID] = e
	r.total++
	if unreadable != nil {
		r.emit(EventWarning, pod, ReasonDrainOrderUnreadable, unreadable.Error())
	}
	switch {
	case verdict == verdictRefuse:
		r.block(e, reason, message)
	case verdict == verdictEvict && r.begun && r.returns.note(pod):
		e.comesBack = true
		r.block(e, ReasonPodsComeBack, comesBackMessage(pod))
	}
	r.refresh(ctx, e, pod)
	return nil, nil
}

// reconsider judges anew a pod that came in the middle of the drain and may not be evicted:
// a controller may have adopted it since. Without an answer it stays as it is.
func (r *run) reconsider(ctx context.Context, e *entry) {
	if !e.refused || e.state != stateBlocked || e.pod.DeletionTimestamp != nil {
		return
	}
	verdict, reason, message, err := r.selector.judge(ctx, e.pod)
	switch {
	case err != nil:
	case verdict == verdictRefuse:
		r.block(e, reason, message)
	case verdict == verdictEvict:
		e.refused = false
		e.queue()
	case verdict == verdictIgnore:
		delete(r.entries, e.pod.UID)
		r.ignored[e.pod.UID] = true
		r.emit(EventSkipped, e.pod, "", "is none of the pods that have to leave any more")
	}
}

// startDue sends the evictions that may succeed now, and holds back those that may not.
func (r *run) startDue(ctx context.Context) {
	now := time.Now()
	if now.Before(r.notBefore) {
		return
	}
	turn := r.turn()
	var oldest *entry // of those that budgets hold
	for _, e := range r.ordered() {
		if r.inFlight >= maxInFlight || e.order > turn {
			break
		}
		switch due, charged := r.due(e, now); {
		case due:
			r.send(ctx, e, charged)
			r.holdVain() // what is under way counts for those that come next
		case e.state == stateQueued && !e.doomed:
			r.holdBack(e)
		}
		if e.heldByBudget() && (oldest == nil || e.tried.Before(oldest.tried)) {
			oldest = e
		}
	}
	if oldest != nil && r.inFlight < maxInFlight && !now.Before(r.nextFallback) {
		r.send(ctx, oldest, r.charge(oldest))
	}
}

// due says whether an eviction may succeed now, and returns the budget that has been
// charged for it, if any. What the budgets say decides, and the API server has the last
// word: a pod that they hold is tried all the same now and then.
func (r *run) due(e *entry, now time.Time) (bool, *policyv1.PodDisruptionBudget) {
	if e.stays() || e.doomed || e.state != stateQueued && e.state != stateBlocked {
		return false, nil
	}
	budgets := r.applying(e.pod)
	waits := e.state == stateBlocked && !e.next.IsZero() && (e.reason != ReasonPDBOverlap || len(budgets) > 1)
	switch {
	case waits && now.Before(e.next):
		return false, nil
	case waits:
		return true, r.charge(e)
	case len(budgets) == 0: // it is free; or what held it is gone, unless that is what it was tried under
		return e.state == stateQueued || e.triedBudget != "", nil
	case len(budgets) > 1: // the API server refuses, once
		return e.state == stateQueued, nil
	}
	return r.roomUnder(budgets[0], e)
}

// roomUnder says whether the one budget of a pod lets it go now.
func (r *run) roomUnder(b *policyv1.PodDisruptionBudget, e *entry) (bool, *policyv1.PodDisruptionBudget) {
	news := version(b) != e.triedBudget || ready(e.pod) != e.triedReady
	if !news || !allows(b, e.pod) {
		return false, nil
	}
	if !ready(e.pod) { // it takes nothing from the budget
		return true, nil
	}
	return r.cluster.rooms.take(b), b
}

// charge reserves a disruption whether there is one or not.
func (r *run) charge(e *entry) *policyv1.PodDisruptionBudget {
	b := r.onlyBudget(e)
	if b == nil || !ready(e.pod) {
		return nil
	}
	r.cluster.rooms.charge(b)
	return b
}

// applying are the budgets that the API server asks when the pod is to be evicted.
func (r *run) applying(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	if !guarded(pod) {
		return nil
	}
	return matching(pod, r.budgets)
}

func (r *run) onlyBudget(e *entry) *policyv1.PodDisruptionBudget {
	if budgets := r.applying(e.pod); len(budgets) == 1 {
		return budgets[0]
	}
	return nil
}

// holdBack keeps a pod whose refusal is known without asking.
func (r *run) holdBack(e *entry) {
	b := r.onlyBudget(e)
	if b == nil {
		return
	}
	if r.nextFallback.Before(time.Now()) {
		r.nextFallback = time.Now().Add(jitter(r.pace.fallback))
	}
	reason, message := r.heldBy(e)
	if message == "" {
		message = fmt.Sprintf("budget %s allows %d disruptions at a time, and others have taken them", b.Name, b.Status.DisruptionsAllowed)
	}
	e.next, e.triedBudget = time.Time{}, unasked
	r.block(e, reason, message)
}

// unasked stands for the version of a budget under which nothing was tried: whatever comes is news.
const unasked = "unasked"

// send asks for the eviction, and tells the budget that was charged for it, if any, of the answer.
func (r *run) send(ctx context.Context, e *entry, charged *policyv1.PodDisruptionBudget) {
	if e.heldByBudget() {
		r.nextFallback = time.Now().Add(jitter(r.pace.fallback))
	}
	e.state, e.tried = stateEvicting, time.Now()
	e.triedBudget, e.triedReady = "", ready(e.pod)
	if b := r.onlyBudget(e); b != nil {
		e.triedBudget = version(b)
	}
	r.inFlight++
	r.result.Requests++
	pod := e.pod
	go func() {
		err := r.cluster.evict(ctx, pod)
		if charged != nil {
			r.cluster.answered(charged.UID, err == nil)
		}
		r.results <- attempt{pod, err} // never blocks: as many places as requests
	}()
}

// await sleeps until something has happened that startDue may act on.
func (r *run) await(ctx context.Context) error {
	timer := time.NewTimer(time.Until(r.alarm()))
	defer timer.Stop()
	select {
	case <-r.wake:
	case <-timer.C:
	case a := <-r.results:
		return r.settle(ctx, a)
	case <-r.pods.refused:
		return missingPermission(r.pods.refusal)
	case <-r.budgets.refused:
		return missingPermission(r.budgets.refusal)
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
	if now := time.Now(); now.Before(r.notBefore) {
		sooner(r.notBefore)
	}
	sooner(r.nodeAlarm())
	for _, e := range r.entries {
		for _, t := range r.alarms(e) {
			sooner(t)
		}
	}
	return at
}

// alarms are the times at which the clock alone changes something for one pod.
func (r *run) alarms(e *entry) []time.Time {
	var hopeless []time.Time
	if at := r.hopelessAt(e); !at.IsZero() {
		hopeless = append(hopeless, at)
	}
	switch {
	case e.heldByBudget():
		return append(hopeless, r.nextFallback)
	case e.state == stateBlocked && (e.comesBack || e.vain):
		return hopeless
	case e.state == stateBlocked && !e.refused: // that one waits for news alone
		return []time.Time{e.next}
	case e.state == stateLeaving && e.pod.DeletionTimestamp != nil && r.opts.SkipWaitForDeleteTimeout > 0:
		return []time.Time{e.pod.DeletionTimestamp.Add(r.opts.SkipWaitForDeleteTimeout + time.Millisecond)}
	}
	return nil
}

// stillThere says what is left; early is why the drain ends before its timeout, "" where it does not.
func (r *run) stillThere(early string, pods []BlockedPod) *Blocked {
	if early != "" {
		early = ", and the drain ends before its timeout, since " + early
	}
	return &Blocked{
		Reason:  gravestReason(pods),
		Message: fmt.Sprintf("%d of %d pods are still on node %s after %s%s: %s", len(r.entries), r.total, r.node, time.Since(r.start).Round(time.Second), early, describe(pods)),
		Pods:    pods,
	}
}

func (r *run) remaining() []BlockedPod {
	out := make([]BlockedPod, 0, len(r.entries))
	for _, e := range r.ordered() {
		out = append(out, e.blocked(namesOf(matching(e.pod, r.budgets))))
	}
	return out
}

func jitter(d time.Duration) time.Duration { return d + time.Duration(rand.Int64N(int64(d)*2/5+1)) }
