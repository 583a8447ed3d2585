package files

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// inherit gives the new file the mode asked for and the owner of the file it replaces.
func inherit(f *os.File, path string, mode fs.FileMode) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() { // a link is replaced, and whose its target is says nothing
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
				return fmt.Errorf("keeping the owner of %s: %w", path, err)
			}
		}
	}
	if err := f.Chmod(mode); err != nil {
		return fmt.Errorf("setting the mode of %s: %w", path, err)
	}
	return nil
}
