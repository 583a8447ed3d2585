package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedWithItsModeAndNothingIsLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, WriteAtomic(path, []byte("old"), 0o644))
	require.NoError(t, WriteAtomic(path, []byte("new"), 0o600))
	assertFile(t, path, "new", 0o600)

	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestARunningProgramCanBeReplaced(t *testing.T) {
	// Writing into it would fail with "text file busy"; a rename does not.
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, CopyAtomic(path, "/bin/sleep", 0o755))
	process, err := os.StartProcess(path, []string{"sleep", "60"}, &os.ProcAttr{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill(); _, _ = process.Wait() })
	require.NoError(t, CopyAtomic(path, "/bin/true", 0o755))
	want, _, err := Digest("/bin/true")
	require.NoError(t, err)
	got, size, err := Digest(path)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Positive(t, size)
}

func TestAWriteThatFailsLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, WriteAtomic(path, []byte("old"), 0o644))
	require.Error(t, CopyAtomic(path, t.TempDir(), 0o644), "a directory cannot be copied as a file")
	assertFile(t, path, "old", 0o644)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "the temporary file must be gone")
}

func TestABackupKeepsTheFirstContent(t *testing.T) {
	root := t.TempDir()
	dir, path := filepath.Join(root, "backup"), filepath.Join(root, "kubelet.conf")
	require.NoError(t, WriteAtomic(path, []byte("original"), 0o640))
	existed, err := Backup(dir, path)
	require.NoError(t, err)
	assert.True(t, existed)

	require.NoError(t, WriteAtomic(path, []byte("changed"), 0o640))
	_, err = Backup(dir, path) // the step is repeated after a crash
	require.NoError(t, err)
	require.NoError(t, Restore(dir, path))
	assertFile(t, path, "original", 0o640)

	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
}

func TestRestoringAFileThatWasNotThereRemovesIt(t *testing.T) {
	root := t.TempDir()
	dir, path := filepath.Join(root, "backup"), filepath.Join(root, "drop-in.conf")
	existed, err := Backup(dir, path)
	require.NoError(t, err)
	assert.False(t, existed)
	require.NoError(t, WriteAtomic(path, []byte("ours"), 0o644))
	require.NoError(t, Restore(dir, path))
	assert.NoFileExists(t, path)
	require.NoError(t, Restore(dir, path), "again is fine")
}

func assertFile(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, content, string(data))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, mode, info.Mode().Perm())
}
