// Package packagelock tells who holds the lock of the host's package manager. The lock
// is only looked at, never taken and never broken: a look costs a few system calls, so
// that the agent can afford it too.
package packagelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// files in the order in which apt takes them.
var files = []string{"var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock"}

// Holder is who holds the lock on the host under root now; nil when nobody does.
func Holder(root string) (*upgrade.LockFacts, error) {
	for _, file := range files {
		holder, err := holderOf(filepath.Join(root, file))
		if err != nil || holder != nil {
			return holder, err
		}
	}
	return nil, nil
}

// holderOf opens the file for reading only: the agent may not write there, and a look needs no more.
func holderOf(path string) (*upgrade.LockFacts, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the package manager's lock: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing is written
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return nil, fmt.Errorf("looking at the lock %s: %w", path, err)
	}
	if lock.Type == unix.F_UNLCK {
		return nil, nil
	}
	return &upgrade.LockFacts{PID: int(lock.Pid), Command: commandOf(int(lock.Pid)), Path: path}, nil
}

func commandOf(pid int) string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return "" // ended meanwhile, or in another process namespace
	}
	return strings.TrimSpace(string(name))
}
