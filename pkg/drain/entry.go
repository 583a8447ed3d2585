package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// state is how far a pod has come in a drain.
type state int

const (
	stateQueued   state = iota // to be evicted as soon as there is room
	stateEvicting              // a request is under way
	stateBlocked               // refused; waits for an event, or for its time
	stateLeaving               // evicted or deleted; the kubelet ends it
)

// entry is one pod that has to leave.
type entry struct {
	pod   *corev1.Pod
	order int // see orderOf
	state state
	since time.Time // of state and reason
	// reason and message of a blocked pod.
	reason, message string
	// next is when the clock alone makes it due; zero for pods that budgets hold.
	next     time.Time
	failures int
	tried    time.Time
	// What was known when it was last tried: only news make it due again. triedBudget is "" where no budget was known.
	triedBudget string
	triedReady  bool
	// hopelessSince is when a budget was first seen to rule out that it ever goes; zero while there is hope.
	hopelessSince time.Time
	// comesBack: it is not evicted, since its controller would put another one onto the node.
	comesBack bool
	// refused: it came in the middle of the drain, and a policy forbids to evict it. It may end by itself, or be adopted.
	refused bool
	// vain: it would be evicted in vain, or too early, see vain; for good where only a person can help.
	vain, vainForGood bool
	// doomed: it was left at the deadline, and is deleted past its budget, by policy. It is evicted no more.
	doomed bool
	// lateSaid: it was to have ended, has not, and that was said.
	lateSaid bool
}

func (e *entry) hold(reason, message string) {
	if e.state != stateBlocked || e.reason != reason {
		e.since = time.Now()
	}
	e.state, e.reason, e.message = stateBlocked, reason, message
}

func (e *entry) queue() {
	e.state, e.since, e.reason, e.message, e.next = stateQueued, time.Now(), "", "", time.Time{}
}

func (e *entry) leave() {
	e.state, e.since, e.reason, e.next = stateLeaving, time.Now(), ReasonPodsTerminating, time.Time{}
	e.message = "is leaving; its containers have not ended yet"
}

func (e *entry) heldByBudget() bool {
	return e.state == stateBlocked && e.next.IsZero() && !e.stays() && !e.doomed
}

// stays says that the drain does not touch the pod, whatever its budgets allow.
func (e *entry) stays() bool { return e.comesBack || e.refused || e.vain }

func (e *entry) blocked(budgets []string) BlockedPod {
	p := BlockedPod{
		Namespace: e.pod.Namespace, Name: e.pod.Name, UID: e.pod.UID,
		PDBs: budgets, Since: e.since, Reason: e.reason, Message: e.message,
	}
	if p.Reason == "" && e.state == stateQueued {
		p.Reason, p.Message = ReasonWaitsForOthers, "is evicted when those before it have left"
	}
	if p.Reason == "" {
		p.Reason, p.Message = ReasonEvictionFailed, "its eviction has not been answered yet"
	}
	return p
}
