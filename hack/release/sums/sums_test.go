package sums_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/hack/release/sums"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func TestAReleaseIsCheckedAgainstItsDigests(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b.deb", "two")
	put(t, dir, "a.rpm", "abc")
	require.NoError(t, sums.Write(dir))
	text, err := os.ReadFile(filepath.Join(dir, sums.File))
	require.NoError(t, err)
	assert.Equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.rpm\n"+
		"3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  b.deb\n", string(text))
	require.NoError(t, sums.Check(dir))
	require.NoError(t, sums.Write(dir), "again, beside its own file")
	require.NoError(t, sums.Check(dir))
}

func TestEveryDifferenceIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(dir string)
		want   string
	}{
		"changed":        {func(dir string) { put(t, dir, "a", "other") }, "a has digest"},
		"missing":        {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "a"))) }, "a: no such file"},
		"added":          {func(dir string) { put(t, dir, "c", "x") }, "c has no digest"},
		"no digests":     {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, sums.File))) }, "reading the digests"},
		"empty":          {func(dir string) { put(t, dir, sums.File, "") }, "names no file"},
		"another folder": {func(dir string) { put(t, dir, sums.File, "00  ../a\n") }, "none of a digest and a file name"},
		"no line":        {func(dir string) { put(t, dir, sums.File, "nonsense\n") }, "none of a digest and a file name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "a", "one")
			require.NoError(t, sums.Write(dir))
			tc.change(dir)
			require.ErrorContains(t, sums.Check(dir), tc.want)
		})
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"", "00  a\n", "  \n", "00  ../a", "00  .\n", "x\x00  a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		put(t, dir, "a", "abc")
		put(t, dir, sums.File, text)
		if err := sums.Check(dir); err == nil {
			assert.Contains(t, text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a")
		}
	})
}
