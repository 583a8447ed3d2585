package scale

import (
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// observer notes, from outside, when what was seen on the API server.
type observer struct {
	mu       sync.Mutex
	slots    map[string]bool      // grants in the ledger as it was seen last
	machines map[string]string    // by grant
	reserved []moment             // in the order in which they were seen
	released []moment             //
	granted  map[string]time.Time // by grant
	ended    map[string]time.Time // by grant: the host has reported the end of its work
	most     int                  // slots at once
}

type moment struct {
	grant string
	at    time.Time
}

func newObserver() *observer {
	return &observer{slots: map[string]bool{}, machines: map[string]string{}, granted: map[string]time.Time{}, ended: map[string]time.Time{}}
}

func (o *observer) machine(before, now *v1alpha1.Machine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if g := now.Status.Grant; g != nil && !g.Void && (before.Status.Grant == nil || before.Status.Grant.ID != g.ID) {
		o.granted[g.ID] = time.Now()
	}
	op := now.Status.LastOperation
	if op != nil && op.State == v1alpha1.OperationSuccessful && o.ended[op.ID].IsZero() {
		o.ended[op.ID] = time.Now()
	}
}

func (o *observer) ledger(l *v1alpha1.Ledger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, slots := time.Now(), map[string]bool{}
	for _, s := range l.Spec.Slots {
		slots[s.GrantID] = true
		if !o.slots[s.GrantID] {
			o.reserved = append(o.reserved, moment{s.GrantID, now})
			o.machines[s.GrantID] = s.Machine
		}
	}
	for id := range o.slots {
		if !slots[id] {
			o.released = append(o.released, moment{id, now})
		}
	}
	o.slots, o.most = slots, max(o.most, len(slots))
}

// reservations is how many slots have been reserved.
func (o *observer) reservations() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.reserved)
}

func (o *observer) releases() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.released)
}

// latencies of a rollout that kept places slots full, from its reservation number from on to
// the one before number to: each reservation follows the release that made room for it.
func (o *observer) latencies(from, to, places int) (reportToRelease, releaseToGrant, reportToGrant []time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := from; i < min(to, len(o.reserved)); i++ {
		k := i - places
		grant := o.granted[o.reserved[i].grant]
		if k < 0 || k >= len(o.released) || grant.IsZero() {
			continue
		}
		free := o.released[k]
		end := o.ended[free.grant]
		releaseToGrant = append(releaseToGrant, max(grant.Sub(free.at), 0))
		if !end.IsZero() {
			reportToRelease = append(reportToRelease, free.at.Sub(end))
			reportToGrant = append(reportToGrant, max(grant.Sub(end), 0))
		}
	}
	return reportToRelease, releaseToGrant, reportToGrant
}
