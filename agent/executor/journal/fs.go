package journal

import (
	"fmt"
	"io/fs"
	"os"
)

// FS is the little that a journal needs of a filesystem, cut so that a test can
// fail or crash between any two effects.
type FS interface {
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]string, error)
	MkdirAll(name string, mode fs.FileMode) error
	// WriteSync creates or truncates, writes, and returns once the content is on disk.
	WriteSync(name string, data []byte, mode fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes names created, renamed or removed in a directory last.
	SyncDir(name string) error
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

// Rename implements FS.
func (Disk) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (Disk) Remove(name string) error { return os.Remove(name) }

// WriteSync implements FS.
func (Disk) WriteSync(name string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

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
