package artefacts

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnImageHoldsItsFilesAndStartsItsProgram(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	require.NoError(t, os.WriteFile(source, []byte("program"), 0o755))
	content := imageContent{
		files: map[string]string{"/usr/local/bin/thing": source}, links: map[string]string{"/usr/sbin/alias": "thing"},
		entrypoint: []string{"/usr/local/bin/thing"},
	}

	require.NoError(t, content.writeImage(dir, registry+"thing:v1"))

	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(filepath.Join(dir, imageFile)) })
	require.NoError(t, err)
	assert.Equal(t, []string{"registry.fleet.test/thing:v1"}, manifest[0].RepoTags)
	image, err := tarball.ImageFromPath(filepath.Join(dir, imageFile), nil)
	require.NoError(t, err)
	require.NoError(t, validate.Image(image))
	config, err := image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, []string{"/usr/local/bin/thing"}, config.Config.Entrypoint)
	assert.NoFileExists(t, filepath.Join(dir, "layer.tar"))

	found := map[string]string{}
	layers := tar.NewReader(mutate.Extract(image))
	for {
		header, err := layers.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		body, err := io.ReadAll(layers)
		require.NoError(t, err)
		found[header.Name] = string(body) + header.Linkname
	}
	assert.Equal(t, "program", found["usr/local/bin/thing"])
	assert.Equal(t, "thing", found["usr/sbin/alias"])
	assert.Contains(t, found, "tmp")
}

func TestAnImageWithoutItsFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	content := imageContent{files: map[string]string{"/thing": filepath.Join(dir, "nowhere")}}
	require.ErrorContains(t, content.writeImage(dir, registry+"thing:v1"), "nowhere")
}
