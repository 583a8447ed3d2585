package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Rooted are the files of the host under a root directory.
type Rooted struct{ Root string }

func (r Rooted) path(name string) string { return filepath.Join(r.Root, name) }

// Read is the content and mode of a file; fs.ErrNotExist when it is not there.
func (r Rooted) Read(name string) (content []byte, mode fs.FileMode, err error) {
	f, err := os.Open(r.path(name))
	if err != nil {
		return nil, 0, fmt.Errorf("opening a file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("looking at %s: %w", name, err)
	}
	content, err = os.ReadFile(r.path(name))
	if err != nil {
		return nil, 0, fmt.Errorf("reading a file: %w", err)
	}
	return content, info.Mode(), nil
}

// Write replaces a file atomically; its directory is made when it is not there.
func (r Rooted) Write(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		return fmt.Errorf("making the directory of %s: %w", name, err)
	}
	return WriteAtomic(r.path(name), content, mode)
}

// Remove deletes a file durably; one that is not there is fine.
func (r Rooted) Remove(name string) error { return Remove(r.path(name)) }

// Digest is the sha256 of a file in hex.
func (r Rooted) Digest(name string) (string, error) {
	digest, _, err := Digest(r.path(name))
	return digest, err
}
