package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// plainDirs are on a plain directory instead of the overlay: overlayfs cannot be the upper of another overlayfs, and the
// kubelet wants to share mounts below its directory.
var plainDirs = []string{"var/lib/containerd", "var/lib/kubelet"}

// Mount assembles the host's disk; safe to repeat.
func (h Host) Mount(ctx context.Context) error {
	for _, d := range append([]string{"root", "upper", "work"}, h.plain()...) {
		if err := os.MkdirAll(filepath.Join(h.dir(), d), 0o755); err != nil {
			return fmt.Errorf("making the disk of host %s: %w", h.Name, err)
		}
	}
	mounted, err := mountsBelow(h.RootDir())
	if err != nil {
		return err
	}
	if !slices.Contains(mounted, h.RootDir()) {
		opts := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(h.Layers, ":"),
			filepath.Join(h.dir(), "upper"), filepath.Join(h.dir(), "work"))
		if err := unix.Mount("overlay", h.RootDir(), "overlay", 0, opts); err != nil {
			return fmt.Errorf("mounting the disk of host %s (%s): %w (the state directory must not itself be on an overlay)", h.Name, opts, err)
		}
	}
	for i, d := range plainDirs {
		target := filepath.Join(h.RootDir(), d)
		if slices.Contains(mounted, target) {
			continue
		}
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("making %s: %w", target, err)
		}
		if err := unix.Mount(filepath.Join(h.dir(), h.plain()[i]), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	return ctx.Err()
}

func (h Host) plain() []string {
	names := make([]string, 0, len(plainDirs))
	for _, d := range plainDirs {
		names = append(names, filepath.Base(d))
	}
	return names
}

// WriteFile writes into the host's file system while the host is off or on.
func (h Host) WriteFile(path string, content []byte, mode os.FileMode) error {
	full := filepath.Join(h.RootDir(), path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return fmt.Errorf("writing %s of host %s: %w", path, h.Name, err)
	}
	if err := os.WriteFile(full, content, mode); err != nil {
		return fmt.Errorf("writing %s of host %s: %w", path, h.Name, err)
	}
	if err := os.Chmod(full, mode); err != nil {
		return fmt.Errorf("setting the mode of %s of host %s: %w", path, h.Name, err)
	}
	return nil
}

// mountsBelow lists the mount points at and below dir, in the order they were mounted.
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mounts of this machine: %w", err)
	}
	return parseMounts(string(data), dir), nil
}

func parseMounts(mountinfo, dir string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescapeMount.Replace(fields[4])
		if point == dir || strings.HasPrefix(point, dir+"/") {
			found = append(found, point)
		}
	}
	return found
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unmountBelow(dir string) error {
	points, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	slices.Reverse(points)
	for _, p := range points {
		if err := unix.Unmount(p, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmounting %s: %w (if it is busy, a process of this machine has a file or its directory there)", p, err)
		}
	}
	return nil
}
