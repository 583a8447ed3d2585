package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is the little that a journal needs of a filesystem, cut so that a test can fail or
// crash between any two effects, and can tell what a power loss after each would leave.
// Nothing in it is durable by itself: that is what Sync and SyncDir are for.
type FS interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]string, error)
	MkdirAll(name string, mode fs.FileMode) error
	// Create creates or truncates a file.
	Create(name string, mode fs.FileMode) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes names created, renamed or removed in a directory last.
	SyncDir(name string) error
}

// File is a file that is being written.
type File interface {
	io.WriteCloser
	// Sync makes the content last, and not its name.
	Sync() error
}

// writeSync creates or truncates, writes, and returns once the content is on disk.
func writeSync(fsys FS, name string, data []byte, mode fs.FileMode) error {
	f, err := fsys.Create(name, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// mkdirSync makes a directory that outlives a power loss: its name is in its parent.
func mkdirSync(fsys FS, name string, mode fs.FileMode) error {
	if err := fsys.MkdirAll(name, mode); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// Disk is the real filesystem.
type Disk struct{}

// ReadFile implements FS.
func (Disk) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// ReadDir implements FS.
func (Disk) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// MkdirAll implements FS.
func (Disk) MkdirAll(name string, mode fs.FileMode) error { return os.MkdirAll(name, mode) }

// Create implements FS.
func (Disk) Create(name string, mode fs.FileMode) (File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
}

// Rename implements FS.
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (Disk) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS.
func (Disk) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // opened for reading
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing directory %s: %w", name, err)
	}
	return nil
}
