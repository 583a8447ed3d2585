// Package image makes container images of single static programs.
package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Nobody is the user of an image whose program needs no rights.
const Nobody = "65532:65532"

// File of an image.
type File struct {
	Source string // on this machine
	Path   string // in the image
}

// FromBinary returns an image from scratch with one program of this machine's architecture in it, run as nobody.
func FromBinary(src, dst string) (v1.Image, error) {
	return FromFiles(runtime.GOARCH, Nobody, File{src, dst})
}

// FromFiles returns an image from scratch with programs that were built for an architecture;
// the first is the entry point. The same files make the same image.
func FromFiles(arch, user string, files ...File) (v1.Image, error) {
	if len(files) == 0 {
		return nil, errors.New("an image needs a program")
	}
	content, err := pack(files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("making a layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding a layer: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = arch, "linux"
	config.Config = v1.Config{Entrypoint: []string{files[0].Path}, User: user}
	return mutate.ConfigFile(img, config)
}

func pack(files []File) ([]byte, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, f := range files {
		content, err := os.ReadFile(f.Source)
		if err != nil {
			return nil, fmt.Errorf("reading the program (run make build): %w", err)
		}
		header := &tar.Header{Name: strings.TrimPrefix(filepath.Clean(f.Path), "/"), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := tw.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Path, err)
		}
		if _, err := tw.Write(content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Path, err)
		}
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return buf.Bytes(), nil
}
