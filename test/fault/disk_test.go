package fault

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// disk is an ext4 filesystem of its own below the whole host, so that its power can be cut.
type disk struct{ image, at string }

// power is the host's disk; nil where this machine can mount none.
var power *disk

const (
	// What xfs and ext4 have for tests of just this: from now on nothing reaches the disk,
	// not even what is in the filesystem's own log and not yet written.
	ioctlShutdown       = 0x8004587d
	withoutFlushingLogs = 2
)

// newDisk mounts a fresh disk where the fleet will put a host.
func newDisk(t *testing.T, image, at string) *disk {
	t.Helper()
	d := &disk{image, at}
	f, err := os.Create(image)
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Truncate(4<<30), f.Close(), os.MkdirAll(at, 0o755)))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Logf("no disk whose power could be cut: %v: %s", err, out)
		return nil
	}
	if err := d.mount(); err != nil {
		t.Logf("no disk whose power could be cut: %v", err)
		return nil
	}
	return d
}

// mount takes a device of its own each time: another mount namespace, such as that of a
// host that boots just now, may keep what was shut down, and would share it otherwise.
func (d *disk) mount() error {
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

// cut is the loss of power: what was not synced is gone.
func (d *disk) cut() error {
	dir, err := os.Open(d.at)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.IoctlSetPointerInt(int(dir.Fd()), ioctlShutdown, withoutFlushingLogs)
}

// again mounts the disk after a loss of power, as the next boot does: its log is replayed.
func (d *disk) again() error {
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
		if err := unix.Unmount(point, 0); err != nil {
			return fmt.Errorf("unmounting %s: %w", point, err)
		}
	}
	return d.mount()
}

// losePower cuts the power of a host while its executor is held. The gate has to be away
// before the disk can be mounted again: it has the journal's directory open.
func (m *machine) losePower() error {
	defer m.dead.Store(true)
	m.unplugged.Store(true)
	return errors.Join(power.cut(), m.Kill())
}

// plugIn makes the disk of a host that lost its power ready for the next boot.
func (m *machine) plugIn() error {
	if !m.unplugged.Swap(false) {
		return nil
	}
	m.gate.open()
	return power.again()
}

func diskOf(state string) (image, at string) {
	return filepath.Join(state, "disk.img"), filepath.Join(state, "fault/hosts/worker-1")
}
