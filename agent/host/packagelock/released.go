package packagelock

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// given are the events of a lock file that is given up: who holds it has it open for
// writing, and a process that ends closes its files; some remove the file instead.
const given = unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ATTRIB

// Released returns a channel that is closed once the holder that was seen holds its lock
// no more; until then nothing runs. A lock that is given up without its file being closed
// is not noticed: look again after a while.
func Released(ctx context.Context, root string, seen upgrade.LockFacts) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching the package manager's lock: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	released := make(chan struct{})
	if _, err := unix.InotifyAddWatch(fd, seen.Path, given); err != nil {
		_ = events.Close()
		if held(root, seen) {
			return nil, fmt.Errorf("watching the package manager's lock %s: %w", seen.Path, err)
		}
		close(released) // the file is gone already
		return released, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = events.Close() })
	go func() {
		defer func() { stop(); _ = events.Close() }()
		buffer := make([]byte, 16*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
		// Looked at only now: it may have been given up before the file was watched.
		for held(root, seen) {
			if _, err := events.Read(buffer); err != nil {
				return
			}
		}
		close(released)
	}()
	return released, nil
}

// held says that the same holder still holds the lock. Another one is news too.
func held(root string, seen upgrade.LockFacts) bool {
	now, err := Holder(root)
	return err == nil && now != nil && now.PID == seen.PID && now.Path == seen.Path
}
