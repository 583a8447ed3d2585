// Package archive packs programs for a download: .tar.gz, and .zip for Windows.
package archive

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// File is one file of an archive.
type File struct {
	Source, Name string
	Mode         os.FileMode
}

// Write makes an archive at path; its name says of which kind. The same files and time give the same bytes.
func Write(path string, at time.Time, contents []File) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating the archive: %w", err)
	}
	write := writeTar
	if filepath.Ext(path) == ".zip" {
		write = writeZip
	}
	if err := errors.Join(write(out, at.UTC(), contents), out.Close()); err != nil {
		return fmt.Errorf("packing %s: %w", path, err)
	}
	return nil
}

func writeTar(out io.Writer, at time.Time, contents []File) error {
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, f := range contents {
		data, err := os.ReadFile(f.Source)
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		head := &tar.Header{Name: f.Name, Mode: int64(f.Mode), Size: int64(len(data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
		if _, err := archive.Write(data); err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

func writeZip(out io.Writer, at time.Time, contents []File) error {
	archive := zip.NewWriter(out)
	for _, f := range contents {
		data, err := os.ReadFile(f.Source)
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		head := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at}
		head.SetMode(f.Mode)
		entry, err := archive.CreateHeader(head)
		if err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
		if _, err := entry.Write(data); err != nil {
			return fmt.Errorf("writing %s: %w", f.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}
