// Package powercut is a disk below a test host whose power can be cut: what was not synced is gone.
package powercut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is an ext4 filesystem of its own below a whole host.
type Disk struct{ image, at string }

const (
	// What xfs and ext4 have for tests of just this: from now on nothing reaches the disk,
	// not even what is in the filesystem's own log and not yet written.
	ioctlShutdown       = 0x8004587d
	withoutFlushingLogs = 2
)

// New mounts a fresh disk of a size in bytes, kept sparse in the file image, where a fleet
// will put a host. It is an error where this machine can mount none.
func New(image, at string, size int64) (*Disk, error) {
	d := &Disk{image, at}
	f, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(size), f.Close(), os.MkdirAll(at, 0o755)); err != nil {
		return nil, err
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making a filesystem: %w: %s", err, out)
	}
	return d, d.mount()
}

// mount takes a device of its own each time: another mount namespace, such as that of a
// host that boots just now, may keep what was shut down, and would share it otherwise.
func (d *Disk) mount() error {
	out, err := exec.Command("losetup", "--find", "--show", d.image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("making a device of a file: %w: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	mountErr := unix.Mount(device, d.at, "ext4", 0, "")
	// From now on the device goes with the last mount of it.
	if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
		return errors.Join(mountErr, fmt.Errorf("letting go of %s: %w: %s", device, err, out))
	}
	return mountErr
}

// Cut is the loss of power: what was not synced is gone. The host still has to be killed.
func (d *Disk) Cut() error {
	dir, err := os.Open(d.at)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.IoctlSetPointerInt(int(dir.Fd()), ioctlShutdown, withoutFlushingLogs)
}

// Again mounts the disk after a loss of power, as the next boot does: its log is replayed.
func (d *Disk) Again() error {
	if err := d.unmount(0); err != nil {
		return err
	}
	return d.mount()
}

// Remove unmounts the disk and deletes it.
func (d *Disk) Remove() error {
	return errors.Join(d.unmount(unix.MNT_DETACH), os.Remove(d.image))
}

func (d *Disk) unmount(flags int) error {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(info)) {
		if fields := strings.Fields(line); len(fields) > 4 && (fields[4] == d.at || strings.HasPrefix(fields[4], d.at+"/")) {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	for _, point := range points {
		if err := unix.Unmount(point, flags); err != nil {
			return fmt.Errorf("unmounting %s: %w", point, err)
		}
	}
	return nil
}
