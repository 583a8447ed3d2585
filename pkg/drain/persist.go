package drain

import (
	"context"
	"fmt"
	"net/http"
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

// Persist tries until it succeeds, until the API server gives an answer that another try does not
// change, or until ctx ends; it then returns what the last try met. It is for what has to be undone:
// a conflict, a connection refused or an overloaded server ends nothing.
func Persist(ctx context.Context, try func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := try()
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-time.After(jitter(max(wait, retryAfter(err)))):
		case <-ctx.Done():
			return err
		}
	}
}

// passing says of an error that the same request may succeed later.
func passing(err error) bool {
	switch code := codeOf(err); code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusUnauthorized:
		return true
	default:
		return code < 400 || code >= 500
	}
}
