package apt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// lockFiles in the order in which apt takes them.
var lockFiles = []string{"var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock"}

// LockHolder is who holds the package manager's lock now; nil when nobody does. The
// lock is only looked at, never taken, and never broken.
func (a *Apt) LockHolder() (*upgrade.LockFacts, error) {
	for _, file := range lockFiles {
		holder, err := holderOf(a.path(file))
		if err != nil || holder != nil {
			return holder, err
		}
	}
	return nil, nil
}

func holderOf(path string) (*upgrade.LockFacts, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_CLOEXEC, 0)
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

// waitLock waits until the lock is free. A holder that stays is a passing fault with
// the holder's name: not an error of this host, and none of our business to end it.
func (a *Apt) waitLock(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	deadline := time.Now().Add(a.LockTimeout)
	for told := false; ; told = true {
		holder, err := a.LockHolder()
		if err != nil || holder == nil {
			return err
		}
		if !told {
			log.Info("Waiting for the package manager's lock", "holder", holder.Command, "pid", holder.PID, "lock", holder.Path)
		}
		if time.Now().After(deadline) {
			return wait("PackageLockHeld", "the package manager's lock %s is held by process %d (%s) for more than %s; wait for it or end it, it is never broken", holder.Path, holder.PID, holder.Command, a.LockTimeout)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the package manager's lock, held by process %d (%s): %w", holder.PID, holder.Command, context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}
