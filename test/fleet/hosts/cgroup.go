package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchy is one mounted cgroup file system: one in all with cgroup v2, one per controller with v1.
type hierarchy struct {
	dir         string
	v2          bool
	controllers []string
}

// UnifiedCgroups says whether this machine gives its controllers to cgroup v2.
func UnifiedCgroups() bool {
	var st unix.Statfs_t
	return unix.Statfs(cgroupRoot, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

func hierarchies() ([]hierarchy, error) {
	data, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return nil, fmt.Errorf("reading the mounts of this machine: %w", err)
	}
	found := parseHierarchies(string(data))
	if len(found) == 0 {
		return nil, errors.New("no cgroup file system is mounted on this machine: systemd cannot run in a host without")
	}
	return found, nil
}

func parseHierarchies(mounts string) []hierarchy {
	var found []hierarchy
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[1], cgroupRoot) {
			continue
		}
		switch f[2] {
		case "cgroup":
			found = append(found, hierarchy{dir: f[1], controllers: strings.Split(f[3], ",")})
		case "cgroup2":
			found = append(found, hierarchy{dir: f[1], v2: true})
		}
	}
	return found
}

// V1Controllers lists the mount points of the v1 controllers, in which a host must be able to write.
func V1Controllers() ([]string, error) {
	hs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, h := range hs {
		if !h.v2 && !slices.Contains(h.controllers, "name=systemd") {
			dirs = append(dirs, h.dir)
		}
	}
	return dirs, nil
}

// EnterCgroup moves the calling process into the named group of every hierarchy.
func EnterCgroup(name string) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		if err := h.create(name); err != nil {
			return fmt.Errorf("making cgroup %s: %w", name, err)
		}
		procs := filepath.Join(h.dir, name, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			return fmt.Errorf("entering cgroup %s: %w", name, err)
		}
	}
	return nil
}

// create makes the group level by level: a new v1 cpuset is empty and takes no process, and a v2 group has only those
// controllers its parent hands down.
func (h hierarchy) create(name string) error {
	dir := h.dir
	for part := range strings.SplitSeq(name, "/") {
		parent := dir
		dir = filepath.Join(dir, part)
		if h.v2 && UnifiedCgroups() {
			if err := handDownControllers(parent); err != nil {
				return err
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if slices.Contains(h.controllers, "cpuset") {
			if err := copyFiles(parent, dir, "cpuset.cpus", "cpuset.mems"); err != nil {
				return err
			}
		}
	}
	return nil
}

func handDownControllers(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for c := range strings.FieldsSeq(string(available)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("handing controller %s down from %s: %w", c, dir, err)
		}
	}
	return nil
}

func copyFiles(from, to string, names ...string) error {
	for _, n := range names {
		content, err := os.ReadFile(filepath.Join(from, n))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, n), content, 0); err != nil {
			return err
		}
	}
	return nil
}

// processesIn lists the processes in the group and below, in any hierarchy.
func processesIn(name string) ([]int, error) {
	hs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	for _, h := range hs {
		for _, dir := range groupsBelow(filepath.Join(h.dir, name)) {
			data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil {
				continue // the group went away while we looked; nothing is in it then
			}
			for p := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(p); err == nil && pid > 0 {
					seen[pid] = true
				}
			}
		}
	}
	pids := make([]int, 0, len(seen))
	for p := range seen {
		pids = append(pids, p)
	}
	slices.Sort(pids)
	return pids, nil
}

// groupsBelow lists dir and the groups below it, parents first; none if dir does not exist.
func groupsBelow(dir string) []string {
	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // groups may vanish under the walk
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

// killGroup sends SIGKILL until nothing is left: a process may fork between listing and killing.
func killGroup(ctx context.Context, name string) error {
	for {
		pids, err := processesIn(name)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, p := range pids {
			if err := syscall.Kill(p, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("killing process %d of %s: %w", p, name, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for processes %v of %s to die: %w", pids, name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// removeGroup removes the empty group and those below it from every hierarchy.
func removeGroup(name string) error {
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		dirs := groupsBelow(filepath.Join(h.dir, name))
		slices.Reverse(dirs)
		for _, d := range dirs {
			if err := removeWithRetry(d); err != nil {
				return fmt.Errorf("removing cgroup %s: %w", d, err)
			}
		}
	}
	return nil
}

// A group stays busy for an instant after its last process was reaped.
func removeWithRetry(dir string) error {
	var err error
	for range 50 {
		if err = unix.Rmdir(dir); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
