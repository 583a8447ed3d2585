package credential

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/pkg/outage"
)

const (
	// look is the longest sleep: a host that was suspended, or whose clock was set, finds out.
	look = time.Hour
	// renewRetry to renewRetryMax are the pauses while the API server is away.
	renewRetry, renewRetryMax = 15 * time.Second, 5 * time.Minute
)

// Source gives a new token.
type Source interface {
	Request(ctx context.Context) (string, error)
}

// Renewer keeps the token in a file fresh.
type Renewer struct {
	File string
	// Source of the next token.
	Source Source
	// OwnToken says that Source asks with the token in File: once that has ended nobody can ask with it.
	OwnToken bool
	// Now, and Sleep until the next look; nil for the clock.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)

	backoff watch.Backoff
	seen    Claims    // of the token that due belongs to
	due     time.Time // when to renew it
	said    string
}

// Run renews until the context ends. It never gives up.
func (r *Renewer) Run(ctx context.Context) {
	r.prepare()
	for ctx.Err() == nil {
		r.Sleep(ctx, r.step(ctx))
	}
}

// First puts a token into the file unless one that counts is there, for as long as it takes.
func (r *Renewer) First(ctx context.Context) error {
	r.prepare()
	for ctx.Err() == nil {
		claims, err := r.read()
		if err == nil && r.Now().Before(claims.Expires) {
			return nil
		}
		if err = r.renew(ctx); err == nil {
			return nil
		}
		r.say(ctx, "Waiting for this host's token: it can be had once the Machine exists", err)
		r.Sleep(ctx, r.backoff.Next(err))
	}
	return fmt.Errorf("waiting for this host's token: %w", context.Cause(ctx))
}

func (r *Renewer) prepare() {
	r.backoff = watch.Backoff{First: renewRetry, Max: renewRetryMax}
	if r.Now == nil {
		r.Now = time.Now
	}
	if r.Sleep == nil {
		r.Sleep = sleep
	}
}

// step renews the token if it is time, and returns how long to sleep.
func (r *Renewer) step(ctx context.Context) time.Duration {
	claims, err := r.read()
	if err != nil {
		r.say(ctx, "This host's token cannot be read; put a new one there (kubectl refit join-token)", err)
		return r.backoff.Next(err)
	}
	now := r.Now()
	if claims != r.seen {
		r.seen, r.due = claims, claims.nextRenewal()
	}
	if wait := r.due.Sub(now); wait > 0 {
		return min(wait, look)
	}
	if r.OwnToken && !now.Before(claims.Expires) {
		r.say(ctx, "This host's token has expired and cannot renew itself; put a new one there (kubectl refit join-token)", nil)
		return r.backoff.Next(nil)
	}
	if err := r.renew(ctx); err != nil {
		r.say(ctx, "This host's token cannot be renewed yet; the present one counts until it expires", err)
		return r.backoff.Next(err)
	}
	return 0
}

func (r *Renewer) renew(ctx context.Context) error {
	token, err := r.Source.Request(ctx)
	if err != nil {
		return err
	}
	claims, err := Parse(token)
	if err != nil {
		return fmt.Errorf("reading the new token: %w", err)
	}
	if err := Write(r.File, token); err != nil {
		return err
	}
	r.backoff.Reset()
	r.said = ""
	logr.FromContextOrDiscard(ctx).Info("This host's token was renewed", "account", claims.Account, "namespace", claims.Namespace, "expires", claims.Expires.UTC().Format(time.RFC3339))
	return nil
}

func (r *Renewer) read() (Claims, error) { return Read(r.File) }

// Read reads what the token in a file says of itself.
func Read(file string) (Claims, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Claims{}, fmt.Errorf("reading the token: %w", err)
	}
	claims, err := Parse(string(text))
	if err != nil {
		return Claims{}, fmt.Errorf("reading the token in %s: %w", file, err)
	}
	return claims, nil
}

// Write replaces the token in a file in one step; nobody but its owner reads it.
func Write(file, token string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making a place for the token: %w", err)
	}
	if err := files.WriteAtomic(file, []byte(token), 0o600); err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	return nil
}

// say logs a state when it changes, not at every attempt.
func (r *Renewer) say(ctx context.Context, message string, err error) {
	if r.said == message {
		return
	}
	r.said = message
	log := logr.FromContextOrDiscard(ctx).WithValues("file", r.File)
	if err != nil {
		log = log.WithValues("reason", outage.Text(err))
	}
	log.Info(message)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
