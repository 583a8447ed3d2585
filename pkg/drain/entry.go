package drain

import (
	"sort"
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
	state state
	since time.Time // of state and reason
	// reason and message of a blocked pod.
	reason, message string
	// next is when the clock alone makes it due; zero for pods that budgets hold.
	next     time.Time
	failures int
	tried    time.Time
	// What was known when it was last tried: only news make it due again.
	triedBudget string
	triedReady  bool
	// hopelessSince is when a budget was first seen to rule out that it ever goes; zero while there is hope.
	hopelessSince time.Time
}

func (e *entry) hold(reason, message string) {
	if e.state != stateBlocked || e.reason != reason {
		e.since = time.Now()
	}
	e.state, e.reason, e.message = stateBlocked, reason, message
}

func (e *entry) leave() {
	e.state, e.since, e.reason, e.next = stateLeaving, time.Now(), ReasonPodsTerminating, time.Time{}
	e.message = "is leaving; its containers have not ended yet"
}

func (e *entry) heldByBudget() bool { return e.state == stateBlocked && e.next.IsZero() }

func (e *entry) blocked(budgets []string) BlockedPod {
	p := BlockedPod{
		Namespace: e.pod.Namespace, Name: e.pod.Name, UID: e.pod.UID,
		PDBs: budgets, Since: e.since, Reason: e.reason, Message: e.message,
	}
	if p.Reason == "" && e.state == stateQueued {
		p.Reason, p.Message = ReasonWaitsForOthers, "is evicted when the others have left"
	}
	if p.Reason == "" {
		p.Reason, p.Message = ReasonEvictionFailed, "its eviction has not been answered yet"
	}
	return p
}

// ordered lists the entries by the time of their last try, so that none starves.
func (r *run) ordered() []*entry {
	out := make([]*entry, 0, len(r.entries))
	for _, e := range r.entries {
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if !a.tried.Equal(b.tried) {
			return a.tried.Before(b.tried)
		}
		return a.pod.Namespace+"/"+a.pod.Name < b.pod.Namespace+"/"+b.pod.Name
	})
	return out
}
