package artefacts

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func nobodyWaits(t *testing.T) func() {
	return func() { t.Error("waited for a lock nobody holds") }
}

func TestCacheDirComesFromTheFirstPlaceThatNamesOne(t *testing.T) {
	for name, tc := range map[string]struct {
		configured string
		env        map[string]string
		want       string
	}{
		"the configuration wins":      {"/a", map[string]string{"REFIT_FLEET_CACHE": "/b", "HOME": "/h"}, "/a"},
		"then the fleet's variable":   {"", map[string]string{"REFIT_FLEET_CACHE": "/b", "XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/b"},
		"then the user's cache":       {"", map[string]string{"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/refit-fleet"},
		"then the user's home":        {"", map[string]string{"HOME": "/h"}, "/h/.cache/refit-fleet"},
		"nothing names one: an error": {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cacheDir(tc.configured, func(key string) string { return tc.env[key] })
			if tc.want == "" {
				require.ErrorContains(t, err, "REFIT_FLEET_CACHE")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAFailedBuildLeavesNoEntryAndNoLitter(t *testing.T) {
	c := cache{dir: t.TempDir()}
	failure := errors.New("no compiler")

	err := c.fill(context.Background(), "thing/v1", nobodyWaits(t), func(dir, _ string) error {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "half"), []byte("ha"), 0o644))
		return failure
	})

	require.ErrorIs(t, err, failure)
	assert.False(t, c.has("thing/v1"))
	left, err := os.ReadDir(filepath.Join(c.dir, "work"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestAnEntryIsMadeOnceHoweverManyAskForIt(t *testing.T) {
	c := cache{dir: t.TempDir()}
	var builds, waited atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			err := c.fill(context.Background(), "thing/v1", func() { waited.Add(1) }, func(dir, _ string) error {
				builds.Add(1)
				time.Sleep(50 * time.Millisecond)
				return os.WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o644)
			})
			assert.NoError(t, err)
			content, err := os.ReadFile(c.path("thing/v1", "file"))
			assert.NoError(t, err)
			assert.Equal(t, "whole", string(content))
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, builds.Load())
	assert.EqualValues(t, 4, waited.Load(), "those who wait are told so")
}

func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	c := cache{dir: t.TempDir()}
	unlock, err := c.lock(context.Background(), "thing/v1", nobodyWaits(t))
	require.NoError(t, err)
	defer unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()

	err = c.fill(ctx, "thing/v1", func() {}, func(string, string) error {
		t.Error("built while another process holds the lock")
		return nil
	})

	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// victimDir makes the test binary play the process that is killed in the middle of a build.
const victimDir = "REFIT_TEST_CACHE_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		_ = cache{dir: dir}.fill(context.Background(), "thing/v1", func() {}, func(dir, _ string) error {
			_ = os.WriteFile(filepath.Join(dir, "half"), []byte("ha"), 0o644)
			_, _ = os.Stdout.WriteString("building\n")
			select {}
		})
	}
	os.Exit(m.Run())
}

func TestAKilledBuildLeavesNoEntryAndTheNextOneStartsClean(t *testing.T) {
	c := cache{dir: t.TempDir()}
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimDir+"="+c.dir)
	stdout, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, victim.Process.Kill())
	require.Error(t, victim.Wait())
	require.FileExists(t, filepath.Join(c.dir, "work", "thing-v1", "half"), "the kill came too late to prove anything")
	require.False(t, c.has("thing/v1"))

	err = c.fill(context.Background(), "thing/v1", nobodyWaits(t), func(dir, _ string) error {
		return os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	})

	require.NoError(t, err)
	assert.NoFileExists(t, c.path("thing/v1", "half"))
	assert.FileExists(t, c.path("thing/v1", "file"))
}

func TestAnEntryWithoutANameIsRefused(t *testing.T) {
	err := cache{dir: t.TempDir()}.fill(context.Background(), "", nobodyWaits(t), nil)
	require.ErrorContains(t, err, "what it depends on is missing")
}
