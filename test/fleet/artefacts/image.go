package artefacts

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// imageContent is what one image consists of: a single layer.
type imageContent struct {
	files      map[string]string // path in the image: file on this machine
	links      map[string]string // path in the image: target
	entrypoint []string
}

// imageFile is the archive of an image in its cache entry.
const imageFile = "image.tar"

// writeImage writes a docker-save archive. The layer goes through a file: its digest is needed before its bytes.
func (c imageContent) writeImage(dir, ref string) error {
	layerFile := filepath.Join(dir, "layer.tar")
	if err := c.writeLayer(layerFile); err != nil {
		return fmt.Errorf("writing layer: %w", err)
	}
	layer, err := tarball.LayerFromFile(layerFile, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
	if err != nil {
		return fmt.Errorf("compressing layer: %w", err)
	}
	image, err := c.configure(layer)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("parsing image name: %w", err)
	}
	if err := tarball.WriteToFile(filepath.Join(dir, imageFile), tag, image); err != nil {
		return fmt.Errorf("writing archive: %w", err)
	}
	return os.Remove(layerFile)
}

func (c imageContent) configure(layer v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding layer: %w", err)
	}
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", RootFS: c.rootFS(layer),
		Config: v1.Config{
			Entrypoint: c.entrypoint, WorkingDir: "/",
			Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting image configuration: %w", err)
	}
	return image, nil
}

// rootFS cannot fail: a layer from a file knows its digests.
func (imageContent) rootFS(layer v1.Layer) v1.RootFS {
	diff, _ := layer.DiffID()
	return v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{diff}}
}

// writeLayer is deterministic: sorted, owned by root, without times.
func (c imageContent) writeLayer(to string) error {
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("creating layer file: %w", err)
	}
	archive := tar.NewWriter(out)
	return errors.Join(c.fillLayer(archive), archive.Close(), out.Close())
}

func (c imageContent) fillLayer(archive *tar.Writer) error {
	for _, dir := range c.directories() {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}
		if dir == "tmp" {
			header.Mode = 0o1777
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("adding %s: %w", dir, err)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(c.files)) {
		if err := addFile(archive, inLayer(target), c.files[target]); err != nil {
			return fmt.Errorf("adding %s: %w", target, err)
		}
	}
	for _, link := range slices.Sorted(maps.Keys(c.links)) {
		header := &tar.Header{Typeflag: tar.TypeSymlink, Name: inLayer(link), Linkname: c.links[link], Mode: 0o777}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("adding %s: %w", link, err)
		}
	}
	return nil
}

// directories lists every directory of the layer, parents first.
func (c imageContent) directories() []string {
	dirs := map[string]bool{"etc": true, "run": true, "tmp": true}
	for _, target := range append(slices.Collect(maps.Keys(c.files)), slices.Collect(maps.Keys(c.links))...) {
		for dir := path.Dir(inLayer(target)); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

func inLayer(target string) string { return strings.TrimPrefix(path.Clean(target), "/") }

func addFile(archive *tar.Writer, target, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("looking at %s: %w", source, err)
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: target, Size: info.Size(), Mode: int64(info.Mode().Perm())}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("writing header: %w", err)
	}
	_, err = io.Copy(archive, in)
	return err
}

func compress(to io.Writer, content []byte) error {
	packed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("preparing compression: %w", err)
	}
	_, err = packed.Write(content)
	return errors.Join(err, packed.Close())
}
