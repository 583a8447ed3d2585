package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
)

// NotBegunError says that the executor ended before it wrote anything down: the host is untouched.
type NotBegunError struct {
	ID    string
	Cause error
}

// Error implements error.
func (e *NotBegunError) Error() string {
	text := fmt.Sprintf("operation %s did not begin, and nothing was changed; see: journalctl -u refit-op-%s.service", e.ID, e.ID)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns what kept it from beginning.
func (e *NotBegunError) Unwrap() error { return e.Cause }

// Look is what an operation looks like at one moment.
type Look struct {
	journal.Record
	// Dead says that its executor has ended before it, while systemd still ends what the
	// executor has left: what the journal says to run does not.
	Dead bool
}

// looksAlive is how long the answer of systemd is good for that an executor lives.
const looksAlive = 2 * time.Second

// Follow starts the executor on an accepted operation, unless something works on it
// already, and shows its journal until nothing works on it any more. The record is not
// finished when the executor ended before it, or when the context ended.
func (a *Applier) Follow(ctx context.Context, id string, show func(Look)) (journal.Record, error) {
	ended := make(chan error, 1)
	go func() { ended <- a.runToEnd(ctx, id) }()
	ticker := time.NewTicker(a.poll())
	defer ticker.Stop()
	dead := a.deaths(ctx, id)
	for {
		select {
		case <-ctx.Done():
			record, _ := a.Store.Journal(id)  // wherever it is: it goes on
			return record, context.Cause(ctx) //nolint:wrapcheck // the signal that ended the wait
		case <-ticker.C:
			if record, err := a.Store.Journal(id); err == nil {
				show(Look{record, !record.Finished() && dead()})
			}
		case err := <-ended:
			if ctx.Err() != nil {
				continue
			}
			return a.end(ctx, id, err, show)
		}
	}
}

// deaths asks systemd now and then whether the executor has ended; without an answer it has not.
func (a *Applier) deaths(ctx context.Context, id string) func() bool {
	dead, asked := false, time.Now()
	return func() bool {
		if time.Since(asked) >= min(looksAlive, 4*a.poll()) {
			alive, err := a.Executor.Alive(ctx, id)
			dead, asked = err == nil && !alive, time.Now()
		}
		return dead
	}
}

func (a *Applier) poll() time.Duration {
	if a.Poll > 0 {
		return a.Poll
	}
	return 500 * time.Millisecond
}

// runToEnd is not cut short before the start: an accepted operation is begun.
func (a *Applier) runToEnd(ctx context.Context, id string) error {
	begin := context.WithoutCancel(ctx)
	running, err := a.Executor.Running(begin, id)
	if err != nil {
		return err
	}
	if !running {
		if err := a.Executor.Start(begin, id); err != nil {
			return err
		}
	}
	return a.Executor.Wait(ctx, id)
}

// end reads how it went: the journal knows, and nothing else.
func (a *Applier) end(ctx context.Context, id string, ended error, show func(Look)) (journal.Record, error) {
	record, err := a.Store.Journal(id)
	if errors.Is(err, fs.ErrNotExist) {
		return record, a.neverBegun(ctx, id, ended)
	}
	if err != nil {
		return record, fmt.Errorf("reading how operation %s went: %w", id, errors.Join(err, ended))
	}
	show(Look{Record: record, Dead: !record.Finished()})
	if !record.Finished() {
		return record, ended
	}
	return record, a.Executor.Release(ctx, id)
}

// neverBegun takes an operation back that nothing has begun, so that nobody begins it later.
func (a *Applier) neverBegun(ctx context.Context, id string, cause error) error {
	running, err := a.Executor.Running(ctx, id)
	if err == nil && !running {
		err = a.Store.DropOperation(id)
	}
	return &NotBegunError{ID: id, Cause: errors.Join(cause, err)}
}
