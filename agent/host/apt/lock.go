package apt

import (
	"context"

	"github.com/refit-dev/refit/agent/host/packagelock"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// LockHolder is who holds the package manager's lock now; nil when nobody does.
func (a *Apt) LockHolder() (*upgrade.LockFacts, error) { return packagelock.Holder(a.path()) }

func (a *Apt) waitLock(ctx context.Context) error {
	return packagelock.Wait(ctx, a.path(), a.LockTimeout)
}
