package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// unjudgedFor is how long a machine that is ready for a place goes without a word of the gates
// before that is said of it.
const unjudgedFor = 5 * time.Second

// unjudged remembers since when machines are ready for a place and the gates have said nothing.
// The zero value is ready, and safe for concurrent use.
type unjudged struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// lasted is how long that is by now.
func (u *unjudged) lasted(key types.NamespacedName, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since == nil {
		u.since = map[types.NamespacedName]time.Time{}
	}
	since, known := u.since[key]
	if !known {
		u.since[key] = now
		return 0
	}
	return now.Sub(since)
}

// end forgets it: the gates have spoken, or the machine is not ready for a place any more.
func (u *unjudged) end(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, key)
}
