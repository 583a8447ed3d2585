package packagelock

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestHelperHoldsTheLock is run as another process: a lock of one's own is not seen.
func TestHelperHoldsTheLock(t *testing.T) {
	path := os.Getenv("REFIT_HOLD_LOCK")
	if path == "" {
		t.Skip("only as a helper of the tests below")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock))
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is closed
	require.NoError(t, f.Close())
}

// holder is another process that holds a lock; close lets it give it up, kill ends it.
func holder(t *testing.T, path string) (release, kill func()) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperHoldsTheLock$")
	helper.Env = append(os.Environ(), "REFIT_HOLD_LOCK="+path)
	stdin, err := helper.StdinPipe()
	require.NoError(t, err)
	stdout, err := helper.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, helper.Start())
	t.Cleanup(func() { _ = stdin.Close(); _ = helper.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	return func() { _ = stdin.Close() }, func() { _ = helper.Process.Kill() }
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAReleaseIsToldAtOnce(t *testing.T) {
	for _, file := range files {
		for name, end := range map[string]func(release, kill func()){
			"given up":      func(release, _ func()) { release() },
			"holder killed": func(_, kill func()) { kill() },
		} {
			t.Run(name+" "+file, func(t *testing.T) {
				root := t.TempDir()
				path := filepath.Join(root, file)
				release, kill := holder(t, path)
				seen, err := Holder(root)
				require.NoError(t, err)
				require.NotNil(t, seen)
				released, err := Released(t.Context(), root, *seen)
				require.NoError(t, err)

				f, err := os.OpenFile(path, os.O_RDWR, 0) // somebody tries to get it, and closes the file
				require.NoError(t, err)
				require.NoError(t, f.Close())
				assert.False(t, isClosed(released), "it is still held")

				end(release, kill)
				require.Eventually(t, func() bool { return isClosed(released) }, 20*time.Second, time.Millisecond)
			})
		}
	}
}

func TestALockThatIsGivenUpBeforeItIsWatchedIsToldToo(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, files[0])
	release, _ := holder(t, path)
	seen, err := Holder(root)
	require.NoError(t, err)
	release()
	require.Eventually(t, func() bool { now, err := Holder(root); return err == nil && now == nil }, 20*time.Second, time.Millisecond)
	released, err := Released(t.Context(), root, *seen)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return isClosed(released) }, 20*time.Second, time.Millisecond)

	require.NoError(t, os.Remove(path))
	released, err = Released(t.Context(), root, *seen)
	require.NoError(t, err, "nor does it matter that its file is gone")
	assert.True(t, isClosed(released))
}

func TestAFileThatNamesItsHolderIsWatchedForItsRemoval(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, pidFiles[0].path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	dnf := exec.CommandContext(t.Context(), "sh", "-c", "while :; do sleep 1; done", "/usr/bin/dnf")
	require.NoError(t, dnf.Start())
	t.Cleanup(func() { _ = dnf.Process.Kill(); _ = dnf.Wait() })
	require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(dnf.Process.Pid)), 0o644))
	require.Eventually(t, func() bool { seen, err := Holder(root); return err == nil && seen != nil }, 20*time.Second, 10*time.Millisecond)
	seen, err := Holder(root)
	require.NoError(t, err)
	released, err := Released(t.Context(), root, *seen)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.Eventually(t, func() bool { return isClosed(released) }, 20*time.Second, time.Millisecond)
}

func TestNothingIsLeftOfAWatchWhoseContextEnded(t *testing.T) {
	descriptors := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		count := 0
		for _, fd := range open {
			if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && target == "anon_inode:inotify" {
				count++
			}
		}
		return count
	}
	root := t.TempDir()
	_, _ = holder(t, filepath.Join(root, files[0]))
	seen, err := Holder(root)
	require.NoError(t, err)
	before := descriptors()
	ctx, end := context.WithCancel(t.Context())
	released, err := Released(ctx, root, *seen)
	require.NoError(t, err)
	assert.Equal(t, before+1, descriptors())
	end()
	require.Eventually(t, func() bool { return descriptors() == before }, 20*time.Second, time.Millisecond)
	assert.False(t, isClosed(released), "nothing was released")
}
