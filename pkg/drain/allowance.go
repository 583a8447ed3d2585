package drain

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// allowance hands out as many tries as each version of a budget has room for: one
// freed disruption wakes one blocked pod, not all of them, even while the watch is
// behind the eviction that has used it up.
type allowance struct {
	budgets []*policyv1.PodDisruptionBudget
	fresh   bool             // from the watch
	taken   map[string]int32 // by version; it outlives one look
}

// take says whether news make it likely that a blocked pod may leave now.
func (a *allowance) take(e *entry) bool {
	if !a.fresh {
		return false
	}
	matched := matching(e.pod, a.budgets)
	if len(matched) != 1 {
		// None: the budget that held it is gone. Several: they can never let it go.
		return len(matched) == 0 && e.triedBudget != ""
	}
	b := matched[0]
	if !allows(b, e.pod) || (version(b) == e.triedBudget && ready(e.pod) == e.triedReady) {
		return false
	}
	if !ready(e.pod) { // unhealthy pods take nothing from the budget
		return true
	}
	if a.taken[version(b)] >= b.Status.DisruptionsAllowed {
		return false
	}
	a.taken[version(b)]++
	return true
}

// version identifies the budgets that a pod was tried under; "" when none is known.
func (a *allowance) version(pod *corev1.Pod) string {
	if !a.fresh {
		return unwatched
	}
	matched := matching(pod, a.budgets)
	if len(matched) == 0 {
		return ""
	}
	return version(matched[0])
}

// unwatched stands for the budgets before they were watched: whatever the watch brings is news.
const unwatched = "unwatched"

func version(b *policyv1.PodDisruptionBudget) string {
	return string(b.UID) + "/" + b.ResourceVersion
}
