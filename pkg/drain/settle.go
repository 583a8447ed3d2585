package drain

import (
	"context"
	"fmt"
	"time"
)

// settle takes in the answer to one eviction. It returns an error only when the whole drain has to end.
func (r *run) settle(ctx context.Context, a attempt) error {
	r.inFlight--
	answer, after := classify(a.err, a.pod)
	if answer == answerEvicted {
		r.result.Evicted++
		r.returns.left(a.pod)
		r.emit(EventEvicted, a.pod, "", "")
	}
	e := r.entries[a.pod.UID]
	if e == nil || e.state != stateEvicting { // gone, or deleted by policy, while the request was under way
		return nil
	}
	switch answer {
	case answerEvicted:
		e.leave()
	case answerGone:
		e.leave() // the watch will say so too
	case answerConflict: // news of the pod is on its way; until then, without a fuss
		e.hold(ReasonEvictionFailed, "it changed while it was being evicted")
		r.backOff(e, after)
	case answerBudget:
		r.blockOnBudget(e, a.err)
	case answerTerminating:
		r.block(e, ReasonNamespaceTerminating, "its namespace is being deleted, which will delete the pod too")
		e.next = time.Now().Add(jitter(r.pace.terminating))
	case answerForbidden:
		return r.settleForbidden(ctx, e, a.err)
	case answerRefused:
		r.refusedByAdmission(e, a.err)
	case answerServerError:
		return r.settleServerError(e, a.err, after)
	case answerBusy, answerFailed:
		r.retryLater(e, a.err, after)
	}
	return nil
}

func (r *run) blockOnBudget(e *entry, err error) {
	if r.nextFallback.Before(time.Now()) {
		r.nextFallback = time.Now().Add(jitter(max(r.pace.fallback, retryAfter(err))))
	}
	e.next, e.failures = time.Time{}, 0
	reason, message := r.heldBy(e)
	if message == "" {
		message = causeMessage(err)
	}
	r.block(e, reason, message)
}

// heldBy words what the budgets say of a pod that one of them holds; no message when they say nothing of the kind.
func (r *run) heldBy(e *entry) (reason, message string) {
	switch budgets := matching(e.pod, r.budgets); {
	case len(budgets) > 1:
		return ReasonPDBOverlap, overlapMessage(budgets)
	case len(budgets) == 1 && !allows(budgets[0], e.pod):
		return ReasonEvictionBlocked, explain(budgets[0], e.pod)
	}
	return ReasonEvictionBlocked, ""
}

// settleForbidden tells a missing role, which ends the drain, from an admission's refusal, which may pass.
func (r *run) settleForbidden(ctx context.Context, e *entry, err error) error {
	allowed, reviewErr := may(ctx, r.client, "create", "eviction", e.pod.Namespace)
	if reviewErr == nil && !allowed {
		return missingPermission(fmt.Errorf("create pods/eviction in namespace %s: %w", e.pod.Namespace, err))
	}
	r.refusedByAdmission(e, err)
	return nil
}

func (r *run) refusedByAdmission(e *entry, err error) {
	r.block(e, ReasonEvictionForbidden, err.Error())
	r.backOff(e, r.pace.terminating)
}

// settleServerError knows the one lasting 500 by what causes it: more than one budget on the pod.
func (r *run) settleServerError(e *entry, err error, after time.Duration) error {
	budgets := matching(e.pod, r.budgets)
	if len(budgets) < 2 {
		r.retryLater(e, err, after)
		return nil
	}
	r.block(e, ReasonPDBOverlap, overlapMessage(budgets))
	if r.opts.OnTimeout == ActionFail {
		pods := []BlockedPod{e.blocked(namesOf(budgets))}
		return &Blocked{Reason: ReasonPDBOverlap, Message: describe(pods), Permanent: true, Pods: pods}
	}
	r.backOff(e, r.pace.terminating)
	return nil
}

func (r *run) retryLater(e *entry, err error, after time.Duration) {
	r.block(e, ReasonEvictionFailed, "evicting it failed and is tried again: "+err.Error())
	r.backOff(e, after)
}

// backOff doubles from the first pace to the last, and is never shorter than what the API server asked for.
func (r *run) backOff(e *entry, atLeast time.Duration) {
	wait := min(r.pace.first<<min(e.failures, 10), r.pace.last)
	e.failures++
	e.next = time.Now().Add(jitter(max(wait, atLeast)))
}

func (r *run) block(e *entry, reason, message string) {
	news := e.reason != reason || e.message != message
	since := e.since
	sameReason := e.reason == reason
	e.hold(reason, message)
	if sameReason { // it was only being tried again
		e.since = since
	}
	if news {
		r.emit(EventBlocked, e.pod, reason, message)
	}
}
