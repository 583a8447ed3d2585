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
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// files in the order in which package managers take them: apt's, then rpm's, which
// newer systems have under /usr, and that of dnf 5.
var files = []string{
	"var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock",
	"var/lib/rpm/.rpm.lock", "usr/lib/sysimage/rpm/.rpm.lock", "run/dnf/rpmtransaction.lock",
}

// pidFile is a lock that is held by the process that it names.
type pidFile struct {
	path string
	// programs that may hold it; nil for any. A number goes to another program in time.
	programs []string
}

// pidFiles are the locks of dnf 4 and of libzypp, which empties its own at its end and
// takes any process that it names for the holder.
var pidFiles = []pidFile{
	{"var/lib/dnf/rpmdb_lock.pid", []string{"dnf", "yum", "packagekit"}},
	{"var/cache/dnf/metadata_lock.pid", []string{"dnf", "yum", "packagekit"}},
	{"run/zypp.pid", nil},
	{"run/zypp-rpm.pid", nil}, // of its helper for transactions, which may outlive it
}

// Holder is who holds the lock on the host under root now; nil when nobody does.
func Holder(root string) (*upgrade.LockFacts, error) {
	for _, file := range files {
		holder, err := holderOf(filepath.Join(root, file))
		if err != nil || holder != nil {
			return holder, err
		}
	}
	for _, file := range pidFiles {
		if holder := file.holder(root); holder != nil {
			return holder, nil
		}
	}
	return nil, nil
}

// holder is the process that a lock file names; nil when it has ended, or when its number
// went to a program that is none of those: dnf takes such a file for stale too.
func (f pidFile) holder(root string) *upgrade.LockFacts {
	path := filepath.Join(root, f.path)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 || pid > maxPID || pid == os.Getpid() || !f.heldBy(pid) {
		return nil
	}
	return &upgrade.LockFacts{PID: pid, Command: commandOf(pid), Path: path}
}

// maxPID is the kernel's own limit; a larger number would be taken for another one.
const maxPID = 1 << 22

func (f pidFile) heldBy(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	switch {
	case err == nil && len(line) == 0:
		return false // ended, and not yet seen by its parent
	case f.programs == nil:
		// A unit with ProtectProc= may not see the process, but that it is there.
		return err == nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	return err == nil && slices.ContainsFunc(f.programs, func(program string) bool { return strings.Contains(string(line), program) })
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
