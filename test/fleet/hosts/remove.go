package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Remove takes the fleet off this machine: processes, mounts, network, control groups. It finds them by what is there, not
// by what was recorded, goes on after a failure, and can be repeated. Files below Dir stay.
func (s Site) Remove(ctx context.Context, names []string) error {
	var errs []error
	for _, n := range names { // unplugged first, so that the dying hosts do not tell each other
		errs = append(errs, Host{Site: s, Name: n}.unplug(ctx))
	}
	errs = append(errs, killGroup(ctx, s.cgroup()), removeGroup(s.cgroup()))
	errs = append(errs, s.removeNetwork(ctx), unmountBelow(s.Dir), s.removeNspawnDirs())
	return errors.Join(errs...)
}

func (s Site) removeNspawnDirs() error {
	for _, d := range s.nspawnDirs() {
		if err := os.RemoveAll(d); err != nil {
			return fmt.Errorf("removing what systemd-nspawn left: %w", err)
		}
	}
	return nil
}

func (s Site) nspawnDirs() []string {
	var dirs []string
	for _, kind := range []string{"propagate", "unix-export"} {
		found, _ := filepath.Glob(filepath.Join("/run/systemd/nspawn", kind, s.Link()+"-*")) // the pattern is well formed
		dirs = append(dirs, found...)
	}
	return dirs
}

// Unmount takes apart the disks below Dir. The files stay.
func (s Site) Unmount() error { return unmountBelow(s.Dir) }

// Leftovers lists what of the fleet is still on this machine.
func (s Site) Leftovers(ctx context.Context) ([]string, error) {
	var left []string
	pids, err := processesIn(s.cgroup())
	if err != nil {
		return nil, err
	}
	for _, p := range pids {
		left = append(left, fmt.Sprintf("process %d", p))
	}
	mounts, err := mountsBelow(s.Dir)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		left = append(left, "mount "+m)
	}
	for _, n := range s.netnses() {
		left = append(left, "network namespace "+n)
	}
	if owner, err := LinkOwner(ctx, s.Link()); err != nil || owner != "" {
		left = append(left, "interface "+s.Link())
	}
	left = append(left, s.nspawnDirs()...)
	return append(left, s.leftGroups()...), nil
}

func (s Site) leftGroups() []string {
	hs, err := hierarchies()
	if err != nil {
		return nil
	}
	var left []string
	for _, h := range hs {
		if dirs := groupsBelow(filepath.Join(h.dir, s.cgroup())); len(dirs) > 0 {
			left = append(left, "cgroup "+dirs[0])
		}
	}
	slices.Sort(left)
	return left
}
