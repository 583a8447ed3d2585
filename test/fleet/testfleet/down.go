package testfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/refit-dev/refit/test/fleet/hosts"
	"github.com/refit-dev/refit/test/fleet/state"
)

// Down takes the named fleet down, also if its record is lost or damaged: then the machine's interface into it tells its index.
func Down(ctx context.Context, name string) error {
	f, err := Open(name)
	if err == nil {
		return f.Down(ctx)
	}
	if cErr := state.CheckName(name); cErr != nil {
		return cErr
	}
	if !errors.Is(err, state.ErrUnknown) {
		fmt.Fprintf(os.Stderr, "Warning: %v; looking for what is left of it\n", err)
	}
	for i := range hosts.MaxSites {
		site := hosts.Site{Index: i, Dir: state.Dir(name)}
		if owner, lErr := hosts.LinkOwner(ctx, site.Link()); lErr == nil && owner == site.Owner() {
			return (&Fleet{record: &state.Fleet{Name: name, Index: i}}).Down(ctx)
		}
	}
	site := hosts.Site{Dir: state.Dir(name)}
	return errors.Join(err, site.Unmount(), os.RemoveAll(site.Dir))
}

// Down takes the fleet off the machine and checks that nothing of it is left: processes, mounts, network, control groups,
// kernel settings, files. It can be repeated, and works on what a crashed Up left.
func (f *Fleet) Down(ctx context.Context) error {
	unlock, err := state.Lock(f.record.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return f.record.Release(ctx, func() error { return f.remove(ctx) })
}

func (f *Fleet) remove(ctx context.Context) error {
	site := f.record.Site()
	var names []string
	for _, h := range f.record.Hosts {
		names = append(names, h.Name)
	}
	if owner, err := hosts.LinkOwner(ctx, site.Link()); err != nil || owner != "" && owner != site.Owner() {
		// Claim refused to take the index from another fleet: then nothing of ours is there but files.
		if err := errors.Join(err, site.Unmount()); err != nil {
			return err
		}
		return f.removeFiles()
	}
	if err := site.Remove(ctx, names); err != nil {
		return fmt.Errorf("taking fleet %s down: %w", f.record.Name, err)
	}
	left, err := site.Leftovers(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("taking fleet %s down: still there, and not removed: %s", f.record.Name, strings.Join(left, ", "))
	}
	return f.removeFiles()
}

// removeFiles takes the record last: until then Down can be repeated.
func (f *Fleet) removeFiles() error {
	dir := state.Dir(f.record.Name)
	for _, sub := range []string{"hosts", "layer"} {
		if err := os.RemoveAll(dir + "/" + sub); err != nil {
			return fmt.Errorf("removing the disks of fleet %s: %w", f.record.Name, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the state of fleet %s: %w", f.record.Name, err)
	}
	return nil
}
