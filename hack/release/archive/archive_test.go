package archive_test

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/hack/release/archive"
)

var at = time.Unix(1_700_000_000, 0)

func make2(t *testing.T, name string, mode os.FileMode) (path string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "built"), []byte("program"), mode))
	path = filepath.Join(dir, name)
	require.NoError(t, archive.Write(path, at, []archive.File{{Source: filepath.Join(dir, "built"), Name: "kubectl-refit", Mode: 0o755}}))
	return path
}

func TestTheSameFilesGiveTheSameArchive(t *testing.T) {
	for _, name := range []string{"x.tar.gz", "x.zip"} {
		one, err := os.ReadFile(make2(t, name, 0o700))
		require.NoError(t, err)
		two, err := os.ReadFile(make2(t, name, 0o644))
		require.NoError(t, err)
		assert.Equal(t, one, two, name)
	}
}

func TestATarHasTheProgram(t *testing.T) {
	f, err := os.Open(make2(t, "x.tar.gz", 0o600))
	require.NoError(t, err)
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	require.NoError(t, err)
	r := tar.NewReader(zipped)
	head, err := r.Next()
	require.NoError(t, err)
	assert.Equal(t, "kubectl-refit", head.Name)
	assert.EqualValues(t, 0o755, head.Mode)
	assert.True(t, head.ModTime.Equal(at))
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "program", string(data))
	_, err = r.Next()
	assert.True(t, errors.Is(err, io.EOF))
}

func TestAZipHasTheProgram(t *testing.T) {
	r, err := zip.OpenReader(make2(t, "x.zip", 0o600))
	require.NoError(t, err)
	defer r.Close()
	require.Len(t, r.File, 1)
	assert.Equal(t, "kubectl-refit", r.File[0].Name)
	assert.Equal(t, os.FileMode(0o755), r.File[0].Mode())
	assert.True(t, r.File[0].Modified.Equal(at))
}

func TestAMissingProgramIsNamed(t *testing.T) {
	for _, name := range []string{"x.tar.gz", "x.zip"} {
		err := archive.Write(filepath.Join(t.TempDir(), name), at, []archive.File{{Source: "/nowhere/at/all", Name: "x", Mode: 0o755}})
		require.ErrorContains(t, err, "/nowhere/at/all", name)
	}
}
