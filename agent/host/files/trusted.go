package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Trust says that only its owner can have put a file there, or a directory: it is of the kind,
// a link is not one, and nobody else may write it. kind is 0 for a plain file.
func Trust(path string, info fs.FileInfo, kind fs.FileMode, owner uint32) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Type() != kind:
		return fmt.Errorf("%s is not what it should be (%s): it has to be a plain %s, links are not followed", path, info.Mode().Type(), kindName(kind))
	case !ok || stat.Uid != owner:
		return fmt.Errorf("%s does not belong to root: chown it", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others than root (%s): chmod go-w", path, info.Mode().Perm())
	}
	return nil
}

func kindName(kind fs.FileMode) string {
	if kind == fs.ModeDir {
		return "directory"
	}
	return "file"
}

// TrustDirs says the same of every directory from below a root down to a path.
func TrustDirs(root, dir string, owner uint32) error {
	path := root
	for _, name := range strings.Split(strings.Trim(filepath.Clean(dir), "/"), "/") {
		path = filepath.Join(path, name)
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("looking whose a directory is: %w", err)
		}
		if err := Trust(path, info, fs.ModeDir, owner); err != nil {
			return err
		}
	}
	return nil
}

// ReadTrusted reads a file under a root that only its owner can have written, and whose name only
// he can have given it. What is looked at is the very file that is read. fs.ErrNotExist says that
// there is none, and that whoever could put one there is its owner alone.
func ReadTrusted(root, name string, owner uint32, limit int64) ([]byte, error) {
	if err := TrustDirs(root, filepath.Dir(name), owner); err != nil {
		return nil, err
	}
	path := filepath.Join(root, name)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a link, and links are not followed: put the file itself there", path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", path, err)
	}
	if err := Trust(path, info, 0, owner); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: keep it short", path, limit)
	}
	return data, nil
}
