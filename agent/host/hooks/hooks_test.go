package hooks

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hooks(t *testing.T) (*Hooks, string) {
	h := New(t.TempDir())
	h.Owner = uint32(os.Getuid())
	dir := filepath.Join(h.Root, Dir)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return h, dir
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

func TestAHookIsRunAndItsExitCodeIsItsAnswer(t *testing.T) {
	h, dir := hooks(t)
	mark := filepath.Join(h.Root, "ran")
	put(t, filepath.Join(dir, "good"), "#!/bin/sh\ntouch "+mark+"\n", 0o755)
	put(t, filepath.Join(dir, "bad"), "#!/bin/sh\necho array degraded; exit 3\n", 0o755)
	require.NoError(t, h.Run(context.Background(), "good"))
	assert.FileExists(t, mark)
	err := h.Run(context.Background(), "bad")
	require.ErrorContains(t, err, "exit code 3")
	require.ErrorContains(t, err, "array degraded")
}

func TestAHookThatAnybodyCouldHaveWrittenIsNotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(t *testing.T, h *Hooks, dir string)
		says string
	}{
		"it is not there":             {func(*testing.T, *Hooks, string) {}, "no such file"},
		"others can write it":         {func(t *testing.T, _ *Hooks, dir string) { put(t, filepath.Join(dir, "x"), "", 0o777) }, "chmod go-w"},
		"it belongs to somebody else": {func(t *testing.T, h *Hooks, dir string) { put(t, filepath.Join(dir, "x"), "", 0o755); h.Owner++ }, "chown"},
		"it cannot be executed":       {func(t *testing.T, _ *Hooks, dir string) { put(t, filepath.Join(dir, "x"), "", 0o644) }, "chmod +x"},
		"it is a link": {func(t *testing.T, _ *Hooks, dir string) {
			require.NoError(t, os.Symlink("/bin/true", filepath.Join(dir, "x")))
		}, "not followed"},
		"others can write the directory": {func(t *testing.T, _ *Hooks, dir string) {
			put(t, filepath.Join(dir, "x"), "", 0o755)
			require.NoError(t, os.Chmod(dir, 0o777))
		}, "chmod go-w"},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := hooks(t)
			tc.make(t, h, dir)
			require.ErrorContains(t, h.Run(context.Background(), "x"), tc.says)
		})
	}
}

func TestANameThatIsAPathIsRefused(t *testing.T) {
	h, _ := hooks(t)
	for _, name := range []string{"", "../x", "a/b", "-x", ".x"} {
		require.ErrorContains(t, h.Run(context.Background(), name), "bare name", name)
	}
}
