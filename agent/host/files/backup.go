package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PrivateDir makes a directory that only root reads: backups may hold keys. One that is
// there is closed, and a link in its place leads somewhere else.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a private directory: %w", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("making a private directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("making a private directory: %s is a link: remove it, or put the directory itself there", dir)
	case info.Mode().Perm() == 0o700:
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("closing a private directory: %w", err)
	}
	return nil
}

// Backup copies a file to the same path under dir, unless a copy is there already: a
// repeated step must not replace the original by what it wrote itself. It says
// whether there was a file at all.
func Backup(dir, path string) (existed bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at a file to back up: %w", err)
	}
	copied := filepath.Join(dir, path)
	if _, err := os.Stat(copied); err == nil {
		return true, nil
	}
	if err := PrivateDir(dir); err != nil {
		return true, err
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
		return true, fmt.Errorf("making a directory for a backup: %w", err)
	}
	return true, CopyAtomic(copied, path, info.Mode().Perm())
}

// Restore puts the copy made by Backup back. Without a copy it removes the file:
// there was none before.
func Restore(dir, path string) error {
	copied := filepath.Join(dir, path)
	info, err := os.Stat(copied)
	if errors.Is(err, fs.ErrNotExist) {
		return Remove(path)
	}
	if err != nil {
		return fmt.Errorf("looking at a backup: %w", err)
	}
	return CopyAtomic(path, copied, info.Mode().Perm())
}
