package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
)

// LockedError says that another executor works on this host.
type LockedError struct {
	Path   string
	Holder string
}

// Error implements error.
func (e *LockedError) Error() string {
	return fmt.Sprintf("another executor (process %s) works on this host and holds %s", e.Holder, e.Path)
}

// Lock is the right to work on this host. The kernel takes it back when its holder
// dies, however it dies; the file stays and means nothing.
type Lock struct{ file *os.File }

const lockPoll = 100 * time.Millisecond

// acquire waits up to a while for the lock.
func acquire(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	if err := files.PrivateDir(filepath.Dir(path)); err != nil { // whoever made it: plans and backups are in it
		return nil, fmt.Errorf("creating the directory of the lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &Lock{f}, sign(f)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			holder, _ := os.ReadFile(path) // only for the message
			return nil, errors.Join(&LockedError{path, strings.TrimSpace(string(holder))}, f.Close())
		case <-time.After(lockPoll):
		}
	}
}

// sign leaves the holder's process id, for the one who waits.
func sign(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("signing the lock: %w", err)
	}
	if _, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0); err != nil {
		return fmt.Errorf("signing the lock: %w", err)
	}
	return nil
}

func (l *Lock) release() { _ = l.file.Close() } // closing is what releases

// AcquireLock takes the lock of a state directory for work that must not run beside an operation.
func AcquireLock(ctx context.Context, stateDir string, wait time.Duration) (release func(), err error) {
	l, err := acquire(ctx, filepath.Join(stateDir, "lock"), wait)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
