package packagelock

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/waiting"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Wait waits until the lock is free. A holder that stays is a passing fault with
// the holder's name: not an error of this host, and none of our business to end it.
func Wait(ctx context.Context, root string, timeout time.Duration) error {
	log := logr.FromContextOrDiscard(ctx)
	start := time.Now()
	for told := false; ; told = true {
		holder, err := Holder(root)
		if err != nil || holder == nil {
			waiting.Over(ctx)
			return err
		}
		if !told {
			log.Info("Waiting for the package manager's lock", "holder", holder.Command, "pid", holder.PID, "lock", holder.Path)
		}
		waiting.For(ctx, holder.Waited(start))
		if time.Since(start) > timeout {
			return &upgrade.Blocked{
				Reason:  upgrade.ReasonPackageLockHeld,
				Message: fmt.Sprintf("%s for more than %s; wait for it or end it, it is never broken", holder, timeout),
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the package manager's lock: %s: %w", holder, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}
