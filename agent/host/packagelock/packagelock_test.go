package packagelock

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B13: dnf 4 locks with files that name a process; one whose process ended, or whose
// number went to another program, holds nothing.
func TestALockFileThatNamesAProcessHoldsAsLongAsThatManagesPackages(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "var/lib/dnf/rpmdb_lock.pid")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	dnf := exec.CommandContext(t.Context(), "sh", "-c", "while :; do sleep 1; done", "/usr/bin/dnf", "upgrade")
	require.NoError(t, dnf.Start())
	ended := make(chan struct{})
	t.Cleanup(func() { _ = dnf.Process.Kill(); <-ended })
	go func() { _ = dnf.Wait(); close(ended) }()

	require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(dnf.Process.Pid)+"\n"), 0o644))
	require.Eventually(t, func() bool { holder, err := Holder(root); return err == nil && holder != nil }, 10*time.Second, 10*time.Millisecond)
	holder, err := Holder(root)
	require.NoError(t, err)
	require.NotNil(t, holder)
	assert.Equal(t, dnf.Process.Pid, holder.PID)
	assert.Equal(t, path, holder.Path)

	for name, content := range map[string]string{"another program": strconv.Itoa(os.Getpid()), "nothing": "", "no number": "x", "nobody": "-1"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		holder, err := Holder(root)
		require.NoError(t, err, name)
		assert.Nil(t, holder, name)
	}
}

// libzypp takes any process that its file names for the holder, and empties the file at its end.
func TestTheFileOfLibzyppHoldsAsLongAsItsProcessLives(t *testing.T) {
	for _, file := range []string{"run/zypp.pid", "run/zypp-rpm.pid"} {
		t.Run(file, func(t *testing.T) { holdsWhileItLives(t, file) })
	}
}

func holdsWhileItLives(t *testing.T, file string) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	program := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, program.Start())
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
	require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(program.Process.Pid)), 0o644))
	require.Eventually(t, func() bool { holder, err := Holder(root); return err == nil && holder != nil }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, program.Process.Kill())
	require.Eventually(t, func() bool { holder, err := Holder(root); return err == nil && holder == nil }, 20*time.Second, 10*time.Millisecond,
		"one that nobody has waited for yet holds nothing")
	_ = program.Wait()
	for name, content := range map[string]string{"ended": strconv.Itoa(program.Process.Pid), "emptied": "", "ourselves": strconv.Itoa(os.Getpid()), "no process": "4294967297"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		holder, err := Holder(root)
		require.NoError(t, err, name)
		assert.Nil(t, holder, name)
	}
}
