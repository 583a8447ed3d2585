// Package image makes container images of single static programs.
package image

import (
	"archive/tar"
	"bytes"
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

// FromBinary returns an image from scratch with one program of this machine's architecture in it, run as nobody.
func FromBinary(src, dst string) (v1.Image, error) { return FromBinaryFor(src, dst, runtime.GOARCH) }

// FromBinaryFor is FromBinary for a program that was built for an architecture.
func FromBinaryFor(src, dst, arch string) (v1.Image, error) {
	content, err := os.ReadFile(src)
	if err != nil {
		return nil, fmt.Errorf("reading the program (run make build): %w", err)
	}
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	if err := tw.WriteHeader(&tar.Header{Name: strings.TrimPrefix(filepath.Clean(dst), "/"), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		return nil, fmt.Errorf("packing %s: %w", dst, err)
	}
	if _, err := tw.Write(content); err != nil {
		return nil, fmt.Errorf("packing %s: %w", dst, err)
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("packing %s: %w", dst, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
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
	config.Config = v1.Config{Entrypoint: []string{dst}, User: "65532:65532"}
	return mutate.ConfigFile(img, config)
}
