package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refit-dev/refit/test/fleet/state"
)

// Verb is the hidden command of the fleet program that becomes the daemon: Verb FLEET.
const Verb = "serve"

func pidPath(name string) string { return filepath.Join(state.Dir(name), "daemon.pid") }

// LogPath is the daemon's log.
func LogPath(name string) string { return filepath.Join(state.Dir(name), "daemon.log") }

// holdPidFile locks the pid file for the life of the process: whether a daemon lives is asked of the lock, which the kernel
// drops with the process, never of a number in a file, which may be another process by now.
func holdPidFile(name string) (release func(), err error) {
	file, err := os.OpenFile(pidPath(name), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the daemon's pid file: %w", err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &lock); err != nil {
		return nil, errors.Join(fmt.Errorf("fleet %s has a daemon already (%s is locked): %w", name, pidPath(name), err), file.Close())
	}
	_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for people; the program asks the lock
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the daemon's pid file: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// Pid is the daemon's process id; 0 if there is none. Not for the daemon itself: closing the file would drop its lock.
func Pid(name string) int {
	file, err := os.OpenFile(pidPath(name), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

// Ensure starts the daemon unless it runs, and returns when it serves the recorded fleet. program is the fleet program.
func Ensure(ctx context.Context, program, name string) error {
	died := make(chan error, 1)
	if Pid(name) == 0 {
		cmd, err := start(program, name)
		if err != nil {
			return err
		}
		go func() { died <- cmd.Wait() }()
	}
	for {
		err := Reload(ctx, name)
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOENT) {
			return err
		}
		select {
		case err := <-died:
			return fmt.Errorf("starting the daemon: it ended at once: %w (its log is %s)", err, LogPath(name))
		case <-ctx.Done():
			return fmt.Errorf("waiting for the daemon: %w (its log is %s)", ctx.Err(), LogPath(name))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func start(program, name string) (*exec.Cmd, error) {
	logFile, err := os.OpenFile(LogPath(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the daemon's log: %w", err)
	}
	defer logFile.Close()
	cmd := exec.Command(program, Verb, name)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	return cmd, nil
}
