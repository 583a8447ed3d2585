package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/outage"
)

const (
	// watchTimeout is the shortest watch; jitter makes it up to twice as long.
	watchTimeout = 30 * time.Minute
	// idleSpread is the time over which idle agents come back after a mass disconnect.
	idleSpread = 30 * time.Second
	// busyRetry is how often an agent at work tries: they are as few as the budget lets them be.
	busyRetry = 5 * time.Second
	// absentRetry is how often an agent whose Machine (or whose Role) does not exist yet looks again.
	absentRetry = 20 * time.Second
)

// Event is a new view of the Machine. Fresh says that it comes from a list: versions
// may go back across it, since the API server's store may have been restored.
type Event struct {
	Machine *v1alpha1.Machine // nil: there is none
	Fresh   bool
}

// Watcher follows one Machine for as long as it runs.
type Watcher struct {
	Client *Client
	// Busy says that the host is at work, or waits for a grant: it comes back sooner after a broken connection.
	Busy func() bool
	// Failed is told what has ended a watch; nil for nobody.
	Failed func(err error)
	// Spread overrides the time over which idle agents come back.
	Spread time.Duration

	backoff Backoff
	quiet   string // the reason that was logged last
}

// Run sends every change to events until the context ends. It never gives up.
func (w *Watcher) Run(ctx context.Context, events chan<- Event) {
	w.backoff = Backoff{First: time.Second, Max: time.Minute}
	for ctx.Err() == nil {
		err := w.follow(ctx, events)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if w.Failed != nil {
			w.Failed(err)
		}
		sleep(ctx, w.delay(ctx, err))
	}
}

// follow lists and then watches until something breaks. An expired version is no
// fault: it returns nil and the next round lists anew.
func (w *Watcher) follow(ctx context.Context, events chan<- Event) error {
	list, err := w.Client.list(ctx)
	if err != nil {
		return err
	}
	event := Event{Fresh: true}
	if len(list.Items) > 0 {
		event.Machine = &list.Items[0]
	}
	w.announce(ctx, event.Machine != nil)
	if !send(ctx, events, event) {
		return ctx.Err()
	}
	w.backoff.Reset()
	return w.stream(ctx, list.ResourceVersion, events)
}

func (w *Watcher) stream(ctx context.Context, version string, events chan<- Event) error {
	for {
		next, err := w.streamOnce(ctx, version, events)
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		version = next
	}
}

// streamOnce watches until the server ends the stream, and returns the last version
// seen. A stream that ends long before its time was cut.
func (w *Watcher) streamOnce(ctx context.Context, version string, events chan<- Event) (string, error) {
	start, timeout := time.Now(), jitter(watchTimeout*3/2)
	stream, err := w.Client.watch(ctx, version, timeout)
	if err != nil {
		return version, err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == apiwatch.Error {
			return version, fmt.Errorf("watching the Machine: %w", apierrors.FromObject(event.Object))
		}
		machine, ok := event.Object.(*v1alpha1.Machine)
		if !ok {
			return version, fmt.Errorf("watching the Machine: the API server sent %T", event.Object)
		}
		version = machine.ResourceVersion
		if !w.deliver(ctx, event.Type, machine, events) {
			return version, ctx.Err()
		}
	}
	if time.Since(start) < timeout-time.Minute && ctx.Err() == nil {
		return version, fmt.Errorf("watching the Machine: the stream ended after %s", time.Since(start).Round(time.Second))
	}
	return version, nil
}

func (w *Watcher) deliver(ctx context.Context, kind apiwatch.EventType, machine *v1alpha1.Machine, events chan<- Event) bool {
	switch kind {
	case apiwatch.Bookmark:
		return true
	case apiwatch.Deleted:
		w.announce(ctx, false)
		return send(ctx, events, Event{Fresh: true})
	}
	w.announce(ctx, true)
	return send(ctx, events, Event{Machine: machine})
}

// delay is how long to stay away. The first return of an idle agent is spread, since
// a cut connection is rarely its own alone.
func (w *Watcher) delay(ctx context.Context, err error) time.Duration {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
		w.say(ctx, "The API server does not let this host read its Machine yet; the coordinator grants it when the Machine exists", err)
		return jitter(absentRetry)
	}
	w.say(ctx, "Lost the API server, trying again: what this host has accepted goes on, nothing new is begun, and reports wait", err)
	delay := w.backoff.Next(err)
	if _, asked := apierrors.SuggestsClientDelay(err); !asked && w.Busy != nil && w.Busy() {
		return min(delay, jitter(busyRetry))
	}
	if w.backoff.Failures() > 1 {
		return delay
	}
	spread := w.Spread
	if spread == 0 {
		spread = idleSpread
	}
	return delay + jitter(spread) - spread/2
}

func (w *Watcher) announce(ctx context.Context, exists bool) {
	if exists {
		w.say(ctx, "Following the Machine", nil)
		return
	}
	w.say(ctx, "There is no Machine for this host, waiting for one", nil)
}

// say logs a state once, not at every attempt.
func (w *Watcher) say(ctx context.Context, message string, err error) {
	if w.quiet == message {
		return
	}
	w.quiet = message
	log := logr.FromContextOrDiscard(ctx).WithValues("machine", w.Client.name, "namespace", w.Client.namespace)
	if err != nil {
		log = log.WithValues("reason", outage.Text(err))
	}
	log.Info(message)
}

func send(ctx context.Context, events chan<- Event, event Event) bool {
	select {
	case events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
