package rpm

import (
	"context"

	"github.com/refit-dev/refit/agent/host/packagelock"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// LockHolder is who holds a lock of rpm or dnf now; nil when nobody does.
func (r *RPM) LockHolder() (*upgrade.LockFacts, error) { return packagelock.Holder(r.path()) }

func (r *RPM) waitLock(ctx context.Context) error {
	return packagelock.Wait(ctx, r.path(), r.LockTimeout)
}
