// Package chart packs the Helm chart for a release.
package chart

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Name of the chart, and of the directory in its archive.
const Name = "refit"

var (
	versionLine = regexp.MustCompile(`(?m)^version: .*$`)
	appLine     = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// Pack writes the chart of a directory for a version such as v1.2.3 into an archive, which it names. The same
// files and time give the same bytes.
func Pack(source, version string, at time.Time, dir string) (path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("%s-%s.tgz", Name, strings.TrimPrefix(version, "v")))
	out, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("creating the chart's archive: %w", err)
	}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	err = filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading the chart: %w", err)
		}
		inside, err := filepath.Rel(source, name)
		if err != nil {
			return fmt.Errorf("naming %s: %w", name, err)
		}
		if inside == "Chart.yaml" {
			text = versionLine.ReplaceAll(text, []byte("version: "+strings.TrimPrefix(version, "v")))
			text = appLine.ReplaceAll(text, []byte("appVersion: "+version))
		}
		head := &tar.Header{Name: Name + "/" + filepath.ToSlash(inside), Mode: 0o644, Size: int64(len(text)), ModTime: at.UTC(), Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return fmt.Errorf("writing the chart: %w", err)
		}
		_, err = archive.Write(text)
		return err //nolint:wrapcheck // wrapped below
	})
	if err := errors.Join(err, archive.Close(), zipped.Close(), out.Close()); err != nil {
		return "", fmt.Errorf("packing the chart %s: %w", source, err)
	}
	return path, nil
}
