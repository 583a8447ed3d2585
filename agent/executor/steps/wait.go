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
	return awaitEvery(ctx, poll, poll, look)
}

// awaitSlowly is for what is dear to look at and may take long: it looks ever more rarely.
func awaitSlowly(ctx context.Context, poll time.Duration, look func(context.Context) error) error {
	return awaitEvery(ctx, poll, 20*poll, look)
}

func awaitEvery(ctx context.Context, poll, most time.Duration, look func(context.Context) error) error {
	for ; ; poll = min(2*poll, most) {
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
