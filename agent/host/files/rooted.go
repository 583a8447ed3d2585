package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rooted are the files of the host under a root directory.
type Rooted struct{ Root string }

func (r Rooted) path(name string) string { return filepath.Join(r.Root, name) }

// Read is the content and mode of a file; fs.ErrNotExist when it is not there.
func (r Rooted) Read(name string) (content []byte, mode fs.FileMode, err error) {
	if link, err := os.Lstat(r.path(name)); err == nil && link.Mode().Type() == fs.ModeSymlink {
		if _, err := os.Stat(r.path(name)); err != nil { // not the same as nothing being there
			return nil, 0, fmt.Errorf("opening %s: it is a link that leads nowhere", name)
		}
	}
	f, err := os.OpenFile(r.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, 0, fmt.Errorf("opening a file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("looking at %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("reading %s: it is no plain file (%s)", name, info.Mode().Type())
	}
	content, err = io.ReadAll(f)
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

// Sync makes durable whatever anybody has written to the filesystem of a file or directory.
func (r Rooted) Sync(name string) error {
	f, err := os.Open(r.path(name))
	if err != nil {
		return fmt.Errorf("opening %s to sync its filesystem: %w", name, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("syncing the filesystem of %s: %w", name, err)
	}
	return nil
}
