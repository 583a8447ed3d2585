package apt

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/packagelock"
	"github.com/refit-dev/refit/agent/host/waiting"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// LockHolder is who holds the package manager's lock now; nil when nobody does.
func (a *Apt) LockHolder() (*upgrade.LockFacts, error) { return packagelock.Holder(a.path()) }

// waitLock waits until the lock is free. A holder that stays is a passing fault with
// the holder's name: not an error of this host, and none of our business to end it.
func (a *Apt) waitLock(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	start := time.Now()
	for told := false; ; told = true {
		holder, err := a.LockHolder()
		if err != nil || holder == nil {
			waiting.Over(ctx)
			return err
		}
		if !told {
			log.Info("Waiting for the package manager's lock", "holder", holder.Command, "pid", holder.PID, "lock", holder.Path)
		}
		waiting.For(ctx, holder.Waited(start))
		if time.Since(start) > a.LockTimeout {
			return wait(upgrade.ReasonPackageLockHeld, "%s for more than %s; wait for it or end it, it is never broken", holder, a.LockTimeout)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the package manager's lock: %s: %w", holder, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}
