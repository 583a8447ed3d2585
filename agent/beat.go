package agent

import (
	"context"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// beating is the heartbeat of a host without a Node: nothing else says that it is there while it is idle.
type beating struct {
	running bool
	due     time.Time
}

// beat renews the Lease of the host, once in a while and whatever else goes on.
func (a *Agent) beat(ctx context.Context) {
	b := &a.beating
	if a.Heartbeat == nil || a.machine == nil || !etcdAlone(a.machine) || b.running {
		return
	}
	if a.now().Before(b.due) {
		a.wakeAt(b.due)
		return
	}
	b.running = true
	a.spawn(ctx, func(ctx context.Context) func() {
		err := a.Heartbeat.Renew(ctx, a.now())
		return func() {
			b.running, b.due = false, a.now().Add(a.Timing.Beat)
			if err != nil {
				a.sayOnce(ctx, "heartbeat", "The Lease of this host could not be renewed, trying again", "reason", err.Error())
			}
		}
	})
}

func etcdAlone(m *v1alpha1.Machine) bool {
	return len(m.Spec.Roles) == 1 && m.Spec.Roles[0] == v1alpha1.RoleEtcd
}
