package artefacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cache holds entries: directories that are complete from the moment they exist.
type cache struct{ dir string }

// lockPoll is how often a process looks whether another has finished the entry it waits for.
const lockPoll = 200 * time.Millisecond

func cacheDir(configured string, getenv func(string) string) (string, error) {
	dir := configured
	switch {
	case dir != "":
	case getenv("REFIT_FLEET_CACHE") != "":
		dir = getenv("REFIT_FLEET_CACHE")
	case getenv("XDG_CACHE_HOME") != "":
		dir = filepath.Join(getenv("XDG_CACHE_HOME"), "refit-fleet")
	case getenv("HOME") != "":
		dir = filepath.Join(getenv("HOME"), ".cache", "refit-fleet")
	default:
		return "", errors.New("no place for the fleet cache: set REFIT_FLEET_CACHE to a directory")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving cache directory %s: %w", dir, err)
	}
	return abs, nil
}

func (c cache) path(entry string, elem ...string) string {
	return filepath.Join(append([]string{c.dir, entry}, elem...)...)
}

func (c cache) has(entry string) bool {
	info, err := os.Stat(c.path(entry))
	return err == nil && info.IsDir()
}

// fill makes the entry unless it exists. The lock is held by one process at a time and dies with it, so whatever lies in
// the entry's work directory when the lock is ours is what a crash left, and is removed. The rename is what makes the
// entry exist: a crash before it leaves no entry, a crash after it leaves a complete one.
func (c cache) fill(ctx context.Context, entry string, waiting func(), build func(dir, log string) error) error {
	if entry == "" {
		return errors.New("cache entry has no name: what it depends on is missing")
	}
	unlock, err := c.lock(ctx, entry, waiting)
	if err != nil {
		return err
	}
	defer unlock()
	if c.has(entry) {
		return nil
	}
	work, err := c.workDir(entry)
	if err != nil {
		return err
	}
	if err := build(work, c.logFile(entry)); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	return c.publish(work, entry)
}

func (c cache) workDir(entry string) (string, error) {
	work := filepath.Join(c.dir, "work", flat(entry))
	if err := os.RemoveAll(work); err != nil {
		return "", fmt.Errorf("removing what an earlier run left: %w", err)
	}
	for _, dir := range []string{work, filepath.Dir(c.logFile(entry))} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", fmt.Errorf("creating work directory: %w", err)
		}
	}
	return work, nil
}

// publish syncs the filesystem first: after a power loss a renamed directory with empty files would pass for complete.
func (c cache) publish(work, entry string) error {
	if err := os.MkdirAll(filepath.Dir(c.path(entry)), 0o755); err != nil {
		return fmt.Errorf("creating cache directory: %w", err)
	}
	if err := syncFilesystem(work); err != nil {
		return err
	}
	if err := os.Rename(work, c.path(entry)); err != nil {
		return fmt.Errorf("publishing cache entry: %w", err)
	}
	return nil
}

func (c cache) lock(ctx context.Context, entry string, waiting func()) (unlock func(), err error) {
	path := filepath.Join(c.dir, "locks", flat(entry))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating lock directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := awaitLock(ctx, file, waiting); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// awaitLock polls: a blocking flock cannot be cancelled.
func awaitLock(ctx context.Context, file *os.File, waiting func()) error {
	for told := false; ; {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if !told {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

func (c cache) logFile(entry string) string {
	return filepath.Join(c.dir, "logs", flat(entry)+".log")
}

func flat(entry string) string { return strings.ReplaceAll(entry, "/", "-") }

func syncFilesystem(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening %s to sync it: %w", dir, err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Syncfs(int(file.Fd())); err != nil {
		return fmt.Errorf("syncing %s: %w", dir, err)
	}
	return nil
}
