package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// hostPath is where commands are looked for inside a host.
const hostPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// hostNamespaces are those that a host has of its own.
const hostNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// startInside makes a command and starts it inside the host, from a thread of ours that goes in for good.
//
// Not with nsenter(1): it stops itself when its child is stopped, which is what a host's shutdown does to everybody; it
// would then never reap the child, and the kernel waits for that before it lets the host go: neither would ever end.
func (h Host) startInside(command func() *exec.Cmd) (*exec.Cmd, error) {
	leader := h.Leader()
	if leader == 0 {
		return nil, ErrOff
	}
	var cmd *exec.Cmd
	err := onThrowawayThread(func() error {
		if err := enter(leader); err != nil {
			return err
		}
		cmd = command()
		return cmd.Start()
	})
	return cmd, err
}

// onThrowawayThread runs f in a thread that is used for nothing else, neither before nor after. It is never the process's
// first: that one does not end, and it is what /proc/self and the process id stand for when somebody asks for our mounts or
// our network.
func onThrowawayThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onThrowawayThread(f) // in another thread, as this one is taken until then
			return
		}
		done <- f() // locked to the end: the thread ends with the goroutine
	}()
	return <-done
}

// enter moves the calling thread into the host; its children will be in the host's pid namespace.
func enter(leader int) error {
	pidfd, err := unix.PidfdOpen(leader, 0)
	if err != nil {
		return ErrOff // it was there a moment ago
	}
	defer unix.Close(pidfd)
	// The thread's root and directory must be its own before they can be others.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leaving this machine's file system: %w", err)
	}
	if err := unix.Setns(pidfd, hostNamespaces); err != nil {
		return fmt.Errorf("entering the host: %w", err)
	}
	return nil
}

// lookPath finds a command in the file system of the calling thread. What it does not find it returns as it is, and the start
// fails with its name.
func lookPath(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for _, dir := range filepath.SplitList(hostPath) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return "/" + name
}
