package drain

import (
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// rooms keeps count of what all drains together take out of each budget, so that one
// freed disruption wakes one pod, on whichever node, and no request is sent whose refusal
// is known beforehand. The count is of one version of a budget: what was accepted before
// that version came is in the version already, or is in the next one, which always comes.
type rooms struct {
	mu       sync.Mutex
	byBudget map[types.UID]*room
}

type room struct {
	version  string
	inFlight int32 // requests without an answer
	accepted int32 // since this version came
}

// take reserves one disruption, if the budget has one left. The caller gives back the answer.
func (r *rooms) take(b *policyv1.PodDisruptionBudget) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of(b)
	if of.inFlight+of.accepted >= b.Status.DisruptionsAllowed {
		return false
	}
	of.inFlight++
	return true
}

// charge is take for a request that is sent whether there is room or not.
func (r *rooms) charge(b *policyv1.PodDisruptionBudget) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(b).inFlight++
}

func (r *rooms) answered(budget types.UID, accepted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.byBudget[budget]
	if of == nil {
		return
	}
	of.inFlight--
	if accepted {
		of.accepted++
	}
	if of.inFlight == 0 && of.accepted == 0 {
		delete(r.byBudget, budget)
	}
}

func (r *rooms) of(b *policyv1.PodDisruptionBudget) *room {
	if r.byBudget == nil {
		r.byBudget = map[types.UID]*room{}
	}
	of := r.byBudget[b.UID]
	if of == nil {
		r.prune()
		of = &room{version: b.ResourceVersion}
		r.byBudget[b.UID] = of
	}
	if of.version != b.ResourceVersion {
		of.version, of.accepted = b.ResourceVersion, 0
	}
	return of
}

// mostRooms bounds what is remembered of budgets that may be gone.
const mostRooms = 4096

func (r *rooms) prune() {
	if len(r.byBudget) < mostRooms {
		return
	}
	for uid, of := range r.byBudget {
		if of.inFlight == 0 {
			delete(r.byBudget, uid)
		}
	}
}
