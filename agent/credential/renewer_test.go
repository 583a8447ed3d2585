package credential

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is a clock that a sleep moves, an API server that may be away, and what was logged.
type world struct {
	now    time.Time
	away   bool
	life   time.Duration
	asked  []time.Time
	logged strings.Builder
	r      *Renewer
	ctx    context.Context
	until  time.Time // the test ends here
}

func newWorld(t *testing.T, own bool) *world {
	t.Helper()
	w := &world{now: noon, life: 9 * time.Hour, until: noon.Add(100 * time.Hour)}
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(prefix, args string) { w.logged.WriteString(prefix + args + "\n") }, funcr.Options{})))
	t.Cleanup(cancel)
	w.ctx = ctx
	w.r = &Renewer{
		File: filepath.Join(t.TempDir(), "credentials", "token"), Source: w, OwnToken: own,
		Now: func() time.Time { return w.now },
		Sleep: func(_ context.Context, d time.Duration) {
			if w.now = w.now.Add(d); w.now.After(w.until) {
				cancel()
			}
		},
	}
	return w
}

func (w *world) Request(context.Context) (string, error) {
	w.asked = append(w.asked, w.now)
	if w.away {
		return "", errors.New("connection refused")
	}
	return tokenOf(w1, w.now, w.now.Add(w.life)), nil
}

func (w *world) begin(t *testing.T) {
	t.Helper()
	require.NoError(t, Write(w.r.File, tokenOf(w1, noon, noon.Add(w.life))))
}

func TestATokenNeverEndsWhileTheAPIServerIsThere(t *testing.T) {
	w := newWorld(t, true)
	w.begin(t)
	w.r.Run(w.ctx)
	require.Greater(t, len(w.asked), 14, "100 hours with tokens of 9")
	require.Less(t, len(w.asked), 20)
	last := noon
	for _, at := range w.asked {
		assert.GreaterOrEqual(t, at.Sub(last), 5*time.Hour)
		assert.LessOrEqual(t, at.Sub(last), 7*time.Hour)
		last = at
	}
	info, err := os.Stat(w.r.File)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(w.r.File)
	require.NoError(t, err)
	assert.NotContains(t, w.logged.String(), strings.Split(string(text), ".")[1])
	assert.NotContains(t, w.logged.String(), "c2lnbmF0dXJl")
}

func TestAnAPIServerThatIsAwayIsAskedAgainUntilTheTokenEnds(t *testing.T) {
	w := newWorld(t, true)
	w.begin(t)
	w.away = true
	w.until = noon.Add(20 * time.Hour)
	w.r.Run(w.ctx)
	require.NotEmpty(t, w.asked)
	assert.True(t, w.asked[len(w.asked)-1].Before(noon.Add(9*time.Hour)), "with a token that has ended nobody can ask")
	assert.True(t, w.asked[len(w.asked)-1].After(noon.Add(9*time.Hour-2*renewRetryMax)))
	assert.Less(t, len(w.asked), 120, "at most about every five minutes")
	assert.Equal(t, 1, strings.Count(w.logged.String(), "cannot be renewed yet"), "once, not at every attempt")
	assert.Contains(t, w.logged.String(), "kubectl refit join-token")
}

func TestATokenThatAPersonPutsThereIsTakenUp(t *testing.T) {
	w := newWorld(t, true)
	require.NoError(t, Write(w.r.File, tokenOf(w1, noon.Add(-time.Hour), noon.Add(-time.Minute))))
	sleep := w.r.Sleep
	w.r.Sleep = func(ctx context.Context, d time.Duration) {
		sleep(ctx, d)
		if w.now.After(noon.Add(time.Hour)) && len(w.asked) == 0 {
			w.r.Sleep = sleep
			_ = Write(w.r.File, tokenOf(w1, w.now, w.now.Add(w.life)))
		}
	}
	w.until = noon.Add(12 * time.Hour)
	w.r.Run(w.ctx)
	assert.NotEmpty(t, w.asked, "the new one is renewed in its turn")
}

// The pod of a DaemonSet asks with the pod's token, so an outage longer than a token's life heals by itself.
func TestAPodGetsItsTokenBackAfterALongOutage(t *testing.T) {
	w := newWorld(t, false)
	w.begin(t)
	w.away = true
	sleep := w.r.Sleep
	w.r.Sleep = func(ctx context.Context, d time.Duration) {
		sleep(ctx, d)
		w.away = w.now.Before(noon.Add(30 * time.Hour))
	}
	w.until = noon.Add(31 * time.Hour)
	w.r.Run(w.ctx)
	c, err := Read(w.r.File)
	require.NoError(t, err)
	assert.True(t, c.Expires.After(noon.Add(31*time.Hour)))
}

func TestTheFirstTokenIsWaitedFor(t *testing.T) {
	w := newWorld(t, false)
	w.away = true
	sleep := w.r.Sleep
	w.r.Sleep = func(ctx context.Context, d time.Duration) {
		sleep(ctx, d)
		w.away = len(w.asked) < 5
	}
	require.NoError(t, w.r.First(w.ctx))
	assert.Len(t, w.asked, 6)
	require.NoError(t, w.r.First(w.ctx))
	assert.Len(t, w.asked, 6, "one that counts is kept")
}
