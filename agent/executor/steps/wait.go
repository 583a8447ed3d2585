package steps

import (
	"context"
	"fmt"
	"time"
)

// await looks until the look says nothing, and reports the last thing it said when
// time is up. A look that cannot be made is one that says so: a daemon that is just
// starting refuses connections.
func await(ctx context.Context, poll time.Duration, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting (%w): %w", ctx.Err(), err)
		case <-time.After(poll):
		}
	}
}
