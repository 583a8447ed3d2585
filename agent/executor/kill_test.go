package executor

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
)

// killEnv is the call to the journal's filesystem at which the process kills itself:
// "before 12", "after 12"; "never" lets it live.
const killEnv = "REFIT_TEST_EXECUTOR_KILL"

// killer is the real filesystem, until it ends its own process the way a kernel would:
// no deferred call, no handler and no flush comes after it.
type killer struct {
	journal.Disk
	before, after int
	calls         []string
}

func killAt(when string) journal.FS {
	what, at, _ := strings.Cut(when, " ")
	n, _ := strconv.Atoi(at)
	switch what {
	case "before":
		return &killer{before: n}
	case "after":
		return &killer{after: n}
	case "never":
		return &killer{}
	}
	return nil
}

func (k *killer) call(what string, effect func() error) error {
	k.calls = append(k.calls, what)
	if len(k.calls) == k.before {
		die()
	}
	err := effect()
	if len(k.calls) == k.after {
		die()
	}
	return err
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (k *killer) MkdirAll(name string, mode fs.FileMode) error {
	return k.call("mkdir", func() error { return k.Disk.MkdirAll(name, mode) })
}

func (k *killer) Create(name string, mode fs.FileMode) (f journal.File, err error) {
	err = k.call("create", func() error { f, err = k.Disk.Create(name, mode); return err })
	return killerFile{f, k}, err
}

func (k *killer) Rename(from, to string) error {
	return k.call("rename", func() error { return k.Disk.Rename(from, to) })
}

func (k *killer) Remove(name string) error {
	return k.call("remove", func() error { return k.Disk.Remove(name) })
}

func (k *killer) SyncDir(name string) error {
	return k.call("sync directory", func() error { return k.Disk.SyncDir(name) })
}

type killerFile struct {
	journal.File
	k *killer
}

func (f killerFile) Write(data []byte) (n int, err error) {
	err = f.k.call("write", func() error { n, err = f.File.Write(data); return err })
	return n, err
}

func (f killerFile) Sync() error { return f.k.call("sync", f.File.Sync) }

// A real process with its journal on a real disk is killed by SIGKILL before and after
// every write of that journal, and followed by one that nobody helps. (Every run has the
// two ends of each write; the calls within it, such as between fsync and rename, are
// `make e2e`'s.)
func TestAProcessKilledAtAnyWriteOfItsJournalIsFollowedToTheSameHost(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *bench{"worker": worker, "control plane": controlPlane} {
		t.Run(name, func(t *testing.T) {
			clean := make(t)
			require.Greater(t, len(clean.op.Plan.Steps), 10)
			calls := callsOf(t, clean)
			want := comparable(clean.host.Snapshot())
			ends := 0
			for i, what := range calls {
				within := os.Getenv("REFIT_EXHAUSTIVE") != ""
				if what == "create" || within {
					ends++
					killed(t, make, fmt.Sprint("before ", i+1), what, want)
				}
				if what == "sync directory" || within {
					ends++
					killed(t, make, fmt.Sprint("after ", i+1), what, want)
				}
			}
			require.Greater(t, ends, 2*len(clean.op.Plan.Steps)*2, "a write before and one after each step, with two ends each")
			t.Logf("%d processes are killed, in %d calls to the disk", ends, len(calls))
		})
	}
}

// callsOf runs an operation without a fault, and says what it asks of the journal's disk.
func callsOf(t *testing.T, b *bench) []string {
	t.Helper()
	disk := &killer{}
	e := b.executor()
	e.Config.Journal = disk
	rec, err := New(e.Config).Run(t.Context(), b.op)
	require.NoError(t, err)
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	return disk.calls
}

func killed(t *testing.T, make func(*testing.T) *bench, when, what string, want hostfake.State) {
	t.Run(when+" "+what, func(t *testing.T) {
		t.Parallel()
		b := make(t)
		save(filepath.Join(b.dir, "host.json"), b.host.Snapshot())
		save(filepath.Join(b.dir, "operation.json"), b.op)
		require.Equal(t, syscall.SIGKILL, process(t, b.dir, when), "it was killed there")
		require.Equal(t, syscall.Signal(0), process(t, b.dir, "never"), "its successor ends by itself")

		rec, err := journal.Read(filepath.Join(b.dir, "state"), b.op.ID)
		require.NoError(t, err)
		require.Equal(t, journal.Successful, rec.State, rec.Message)
		open, err := journal.ListOpen(filepath.Join(b.dir, "state"))
		require.NoError(t, err)
		require.Empty(t, open)
		var got hostfake.State
		load(filepath.Join(b.dir, "host.json"), &got)
		require.Equal(t, want, comparable(got))
		for effect, times := range got.Effects {
			if strings.HasPrefix(effect, "unpack ") {
				require.Equal(t, 1, times, "%s", effect)
			}
		}
	})
}

// process is an executor of its own; the signal that ended it, 0 for none.
func process(t *testing.T, dir, when string) syscall.Signal {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, killEnv+"="+when, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	if err := cmd.Run(); err != nil {
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok && status.Signaled(), "it ended by a signal: %v", err)
		return status.Signal()
	}
	return 0
}
