package hooks

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

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
	_, err := h.Run(t.Context(), "good", nil)
	require.NoError(t, err)
	assert.FileExists(t, mark)
	_, err = h.Run(t.Context(), "bad", nil)
	require.ErrorContains(t, err, "exit code 3")
	require.ErrorContains(t, err, "array degraded")
}

func TestAHookThatAnybodyCouldHaveWrittenIsNotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(t *testing.T, h *Hooks, dir string)
		says string
	}{
		"it is not there":             {func(*testing.T, *Hooks, string) {}, "etc/refit/hooks.d/x: put the program there, owned by root and executable, or take its name out of spec.hooks"},
		"no hook is there":            {func(t *testing.T, _ *Hooks, dir string) { require.NoError(t, os.Remove(dir)) }, "this host has no hooks: make it"},
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
		"others can write the directory above": {func(t *testing.T, h *Hooks, dir string) {
			put(t, filepath.Join(dir, "x"), "", 0o755)
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o777))
		}, "etc/refit can be written by others"},
		"the group can write /etc": {func(t *testing.T, h *Hooks, dir string) {
			put(t, filepath.Join(dir, "x"), "", 0o755)
			require.NoError(t, os.Chmod(filepath.Join(h.Root, "etc"), 0o775))
		}, "etc can be written by others"},
		"the directory is a link": {func(t *testing.T, h *Hooks, dir string) {
			elsewhere := t.TempDir()
			put(t, filepath.Join(elsewhere, "x"), "", 0o755)
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.Symlink(elsewhere, dir))
		}, "links are not followed"},
		"it is a directory": {func(t *testing.T, _ *Hooks, dir string) { require.NoError(t, os.Mkdir(filepath.Join(dir, "x"), 0o755)) }, "not what it should be"},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := hooks(t)
			tc.make(t, h, dir)
			_, err := h.Run(t.Context(), "x", nil)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, h.Check("x"), tc.says, "and it is known before")
		})
	}
}

func TestAHookKnowsWhereItStandsAndNothingOfItsCaller(t *testing.T) {
	t.Setenv("SECRET", "hidden")
	h, dir := hooks(t)
	put(t, filepath.Join(dir, "Show_it"), "#!/bin/sh\nenv; pwd; cat\n", 0o755) // cat: nothing can wait for an answer
	output, err := h.Run(t.Context(), "Show_it", []string{"REFIT_MACHINE=w1"})
	require.NoError(t, err)
	assert.Contains(t, output, "REFIT_MACHINE=w1")
	assert.NotContains(t, output, "hidden")
}

func TestWhatAHookPrintsIsBounded(t *testing.T) {
	h, dir := hooks(t)
	put(t, filepath.Join(dir, "long"), "#!/bin/sh\nyes | head -c 10000000; echo the end\n", 0o755)
	output, err := h.Run(t.Context(), "long", nil)
	require.NoError(t, err)
	assert.Less(t, len(output), 4<<10)
	assert.Contains(t, output, "the end")
}

func TestAHookThatDoesNotEndIsEnded(t *testing.T) {
	h, dir := hooks(t)
	put(t, filepath.Join(dir, "hangs"), "#!/bin/sh\necho waiting\nsleep 600\n", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := h.Run(ctx, "hangs", nil)
	require.ErrorContains(t, err, "its time was up")
	require.ErrorContains(t, err, "waiting")
}

func TestANameThatIsAPathIsRefused(t *testing.T) {
	h, _ := hooks(t)
	for _, name := range []string{"", "../x", "a/b", "-x", ".x"} {
		require.ErrorContains(t, h.Check(name), "bare name", name)
	}
}
