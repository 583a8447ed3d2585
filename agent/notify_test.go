package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// told collects what the events of a host's directories tell, until something is told of what is waited for.
func told(t *testing.T, events <-chan string, want func(path string) bool) []string {
	t.Helper()
	var seen []string
	deadline := time.After(10 * time.Second)
	for {
		select {
		case path := <-events:
			seen = append(seen, path)
			if want(path) {
				return seen
			}
		case <-deadline:
			require.Fail(t, "nothing was told of it", "%v", seen)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func isPath(path string) func(string) bool { return func(p string) bool { return p == path } }

func TestWhatTellsOfDriftIsSeenOnTheHost(t *testing.T) {
	root := t.TempDir()
	for _, dir := range HostDirs(root) {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	events, err := FileEvents(t.Context(), HostDirs(root)...)
	require.NoError(t, err)
	for _, path := range []string{
		"var/lib/dpkg/status", "var/lib/rpm/rpmdb.sqlite", upgrade.KubeletDropInPath, upgrade.KubeletUnitDropInPath,
		"etc/apt/sources.list", "etc/apt/sources.list.d/kubernetes.sources", "etc/yum.repos.d/kubernetes.repo", "etc/dnf/plugins/versionlock.list", "etc/dnf/versionlock.toml",
	} {
		path = filepath.Join(root, path)
		write(t, path, "changed")
		told(t, events, isPath(path))
		require.NoError(t, os.Remove(path))
		told(t, events, isPath(path))
	}
	write(t, filepath.Join(root, "var/lib/dpkg/lock"), "")
	write(t, filepath.Join(root, "etc/apt/.sources.list.swp"), "")
	last := filepath.Join(root, "var/lib/dpkg/status")
	write(t, last, "again")
	seen := told(t, events, isPath(last))
	assert.NotContains(t, seen, filepath.Join(root, "var/lib/dpkg/lock"), "not all that a package manager writes")
	assert.NotContains(t, seen, filepath.Join(root, "etc/apt/.sources.list.swp"))
}

// Refit makes the directory of drop-ins itself, long after the agent has started.
func TestADirectoryThatComesLaterIsWatchedThen(t *testing.T) {
	root := t.TempDir()
	events, err := FileEvents(t.Context(), HostDirs(root)...)
	require.NoError(t, err)
	path := filepath.Join(root, upgrade.KubeletDropInPath)
	write(t, path, "a: b")
	told(t, events, func(p string) bool { return p == everything || p == path })
	for _, text := range []string{"a: c", "a: d"} {
		write(t, path, text)
		told(t, events, isPath(path))
	}
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	told(t, events, isPath(path))
	write(t, path, "a: e")
	told(t, events, func(p string) bool { return p == everything || p == path })
	require.Eventually(t, func() bool { // the directory is watched again
		write(t, path, "a: f")
		select {
		case p := <-events:
			return p == path
		case <-time.After(100 * time.Millisecond):
			return false
		}
	}, 10*time.Second, 10*time.Millisecond)
	write(t, filepath.Join(root, "etc/unrelated"), "x")
	write(t, path, "a: g")
	assert.NotContains(t, told(t, events, isPath(path)), filepath.Join(root, "etc/unrelated"), "what is above is watched for the directory alone")
}

func TestAChangedFileOfRefitsIsLookedAtSoonAndNotForEver(t *testing.T) {
	a := idle()
	a.noteFile(upgrade.KubeletDropInPath)
	assert.InDelta(t, a.Timing.Settle, a.probing.due.Sub(a.now()), float64(time.Second))
	var last time.Duration
	for range 12 {
		a.learn(upgrade.Facts{}, nil)
		a.noteFile("/etc/apt/sources.list.d/kubernetes.list")
		last = a.probing.due.Sub(a.now())
	}
	assert.InDelta(t, a.Timing.RetryMax, last, float64(time.Second), "one that is written for ever is looked at ever more rarely")
}

func TestLostEventsAreALookAtTheHost(t *testing.T) {
	a := idle()
	a.noteFile(everything)
	assert.Less(t, a.probing.due.Sub(a.now()), time.Minute)
}

func TestWhatTheExecutorWritesIsItsOwnAffair(t *testing.T) {
	a := idle()
	due := a.probing.due
	a.work.op = &upgrade.Operation{ID: "g1"}
	for _, path := range []string{upgrade.KubeletDropInPath, "/var/lib/dpkg/status", everything} {
		a.noteFile(path)
	}
	assert.Equal(t, due, a.probing.due)
}

func TestAJournalOrAHoldIsNoReasonToLookAtTheHost(t *testing.T) {
	a := idle()
	due := a.probing.due
	a.noteFile("/etc/refit/hold")
	a.noteFile("/var/lib/refit/journal/g1.json")
	assert.Equal(t, due, a.probing.due)
}
