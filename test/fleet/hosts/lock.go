package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process holds it")

// TryLock takes the lock file or fails with ErrLocked. The kernel frees it with the process, however that ends.
func TryLock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil && isAt(file, path):
		return func() { _ = file.Close() }, nil // closing is what unlocks
	case err == nil: // its last holder removed the file after we opened it: the next comer would lock another one
		_ = file.Close()
		return TryLock(path)
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrLocked
	}
	return nil, errors.Join(fmt.Errorf("taking lock %s: %w", path, err), file.Close())
}

func isAt(file *os.File, path string) bool {
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(ours, there)
}

// Lock waits for its turn at the lock file.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		unlock, err := TryLock(path)
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
