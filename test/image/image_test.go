package image_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/image"
)

func TestAnImageHasOneProgramAndRunsItAsNobody(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("not run here"), 0o600))
	img, err := image.FromBinary(program, "/program")
	require.NoError(t, err)
	layers, err := img.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	require.NoError(t, validate.Layer(layers[0]), "its digests are those of its content")
	content, err := layers[0].DiffID()
	require.NoError(t, err)
	config, err := img.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, []v1.Hash{content}, config.RootFS.DiffIDs)
	assert.Equal(t, []string{"/program"}, config.Config.Entrypoint)
	assert.Equal(t, "65532:65532", config.Config.User)
	_, err = image.FromBinary(program+"-missing", "/program")
	require.ErrorContains(t, err, "make build")
}

func TestAnImageHasSeveralProgramsAndStartsTheFirst(t *testing.T) {
	dir := t.TempDir()
	var files []image.File
	for _, name := range []string{"refit-agent", "refit-executor"} {
		program := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(program, []byte(name), 0o600))
		files = append(files, image.File{Source: program, Path: "/" + name})
	}
	img, err := image.FromFiles("amd64", "0:0", files...)
	require.NoError(t, err)
	config, err := img.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, []string{"/refit-agent"}, config.Config.Entrypoint)
	assert.Equal(t, "0:0", config.Config.User)
	again, err := image.FromFiles("amd64", "0:0", files...)
	require.NoError(t, err)
	first, err := img.Digest()
	require.NoError(t, err)
	second, err := again.Digest()
	require.NoError(t, err)
	assert.Equal(t, first, second, "the same files make the same image")
	_, err = image.FromFiles("amd64", "0:0")
	require.Error(t, err)
}

func TestAnArchiveHasTheImageUnderItsTag(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("not run here"), 0o600))
	img, err := image.FromFiles("arm64", image.Nobody, image.File{Source: program, Path: "/program"})
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "dist", "program.tar")
	require.NoError(t, image.WriteArchive(img, "registry.example/refit/program:v1", archive))

	tag, err := name.NewTag("registry.example/refit/program:v1")
	require.NoError(t, err)
	read, err := tarball.ImageFromPath(archive, &tag)
	require.NoError(t, err)
	require.NoError(t, validate.Image(read))
	config, err := read.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "linux/arm64", config.OS+"/"+config.Architecture)
	assert.Equal(t, []string{"/program"}, config.Config.Entrypoint)
	require.ErrorContains(t, image.WriteArchive(img, "no tag at all: ", archive), "the image's name")
}
