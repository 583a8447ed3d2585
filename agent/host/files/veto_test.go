package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAVetoIsWhateverIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		make  func(t *testing.T, path string)
		there bool
		says  string
		doubt bool
	}{
		"nothing": {func(*testing.T, string) {}, false, "", false},
		"a word":  {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("disk swap\n"), 0o600)) }, true, "disk swap", false},
		"no word": {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }, true, "", false},
		"a long text": {func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("é", 10000)), 0o600))
		}, true, "é", false},
		"a directory":               {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, true, "", true},
		"a link that leads nowhere": {func(t *testing.T, path string) { require.NoError(t, os.Symlink("/nowhere/at/all", path)) }, true, "", true},
		"a link in a circle":        {func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) }, true, "", true},
		"a pipe that nobody writes": {func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }, true, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "hold")
			tc.make(t, path)
			message, there, err := Veto(path)
			assert.Equal(t, tc.there, there)
			assert.Equal(t, tc.doubt, err != nil, "%v", err)
			assert.Contains(t, message, tc.says)
			assert.LessOrEqual(t, len(message), maxVeto)
		})
	}
}

// The executor reads the veto, and what it is about to replace, through Rooted.
func TestAFileThatIsNoneIsNeverWaitedFor(t *testing.T) {
	r := Rooted{t.TempDir()}
	require.NoError(t, syscall.Mkfifo(filepath.Join(r.Root, "pipe"), 0o600))
	_, _, err := r.Read("/pipe")
	require.ErrorContains(t, err, "no plain file")
	require.NoError(t, os.Symlink("/nowhere/at/all", filepath.Join(r.Root, "link")))
	_, _, err = r.Read("/link")
	require.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrNotExist, "something is there")
}
