// Package files writes files so that power loss leaves the old content or the new
// one, never a half-written file.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// WriteAtomic replaces a file: temporary file in the same directory, fsync, rename,
// fsync of the directory. An existing file keeps its owner.
func WriteAtomic(path string, data []byte, mode fs.FileMode) error {
	return replace(path, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// CopyAtomic replaces dst by the content of src, with the same care.
func CopyAtomic(dst, src string, mode fs.FileMode) error {
	in, err := os.Open(src)
	if err != nil {
		return fmt.Errorf("opening the source of a copy: %w", err)
	}
	defer in.Close() //nolint:errcheck // only read from
	return replace(dst, mode, func(f *os.File) error {
		_, err := io.Copy(f, in)
		return err
	})
}

func replace(path string, mode fs.FileMode, fill func(*os.File) error) (err error) {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".refit-*")
	if err != nil {
		return fmt.Errorf("creating a temporary file for %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, temp.Close(), os.Remove(temp.Name()))
		}
	}()
	if err := fill(temp); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := inherit(temp, path, mode); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	// The rename is the commit; before it the old file is whole, after it the new one is.
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("renaming into %s: %w", path, err)
	}
	_ = temp.Close()
	return SyncDir(dir)
}

// Remove deletes a file durably; one that is not there is fine.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("removing a file: %w", err)
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes renames and removals within a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening a directory to sync: %w", err)
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	if err := d.Sync(); err != nil {
		return fmt.Errorf("syncing directory %s: %w", dir, err)
	}
	return nil
}

// Digest is the sha256 of a file in hex, and its size.
func Digest(path string) (string, int64, error) { return digest(path, 0) }

// ErrNotPlain says that a link, or something else than a file, is where a file should be.
var ErrNotPlain = errors.New("it is no plain file; links are not followed")

// DigestPlain is the digest of a file that is there itself: what a link leads to could be
// another file by the time it is used.
func DigestPlain(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("looking at a file to digest: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w", path, ErrNotPlain)
	}
	sum, _, err := digest(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	return sum, err
}

func digest(path string, flags int) (string, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		return "", 0, fmt.Errorf("opening a file to digest: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return "", 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), size, nil
}
