package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPrivateDirectoryIsClosedWhoeverMadeItAndIsNoLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "refit")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.NoError(t, PrivateDir(dir))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	link := dir + "-link"
	require.NoError(t, os.Symlink(dir, link))
	require.ErrorContains(t, PrivateDir(link), "is a link")
}

// What a link leads to may be somebody else's: it is replaced, and nothing of it is taken over.
func TestALinkIsReplacedAndItsTargetSaysNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(victim, []byte("theirs"), 0o644))
	require.NoError(t, os.Chown(victim, 12345, 12345))
	require.NoError(t, os.Symlink(victim, link))
	require.NoError(t, WriteAtomic(link, []byte("ours"), 0o600))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular())
	assert.Zero(t, info.Sys().(*syscall.Stat_t).Uid)
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	assert.Equal(t, "theirs", string(text))
}

func TestOnlyAPlainFileHasADigestThatIsGoneBy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(file, []byte("a"), 0o600))
	sum, err := DigestPlain(file)
	require.NoError(t, err)
	assert.Len(t, sum, 64)
	require.NoError(t, os.Symlink(file, filepath.Join(dir, "link")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	for _, name := range []string{"link", "pipe", "."} {
		_, err := DigestPlain(filepath.Join(dir, name))
		require.ErrorIs(t, err, ErrNotPlain, name)
	}
	_, err = DigestPlain(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
