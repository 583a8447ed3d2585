package drain

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// persist reads something again and again until there is an answer: an API server that
// is overloaded, or away for the moment, ends no drain. What is not there and what is not
// allowed are answers.
func (r *run) persist(ctx context.Context, until time.Time, read func() error) error {
	for wait := r.pace.first; ; wait = min(2*wait, r.pace.last) {
		err := read()
		switch {
		case err == nil:
			return nil
		case apierrors.IsForbidden(err):
			return missingPermission(err)
		case apierrors.IsNotFound(err), time.Now().Add(wait).After(until):
			return err
		}
		select {
		case <-time.After(jitter(max(wait, retryAfter(err)))):
		case <-ctx.Done():
			return fmt.Errorf("draining node %s: %w", r.node, ctx.Err())
		}
	}
}
