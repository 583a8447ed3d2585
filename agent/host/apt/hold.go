package apt

import (
	"context"
	"fmt"
	"slices"
)

// SetHold puts packages on hold or takes them off, and looks whether it came about.
// Packages that dpkg does not know cannot be held and are passed over.
func (a *Apt) SetHold(ctx context.Context, names []string, held bool) error {
	known, err := a.Query(ctx, names)
	if err != nil {
		return err
	}
	now, err := a.Holds(ctx)
	if err != nil {
		return err
	}
	var change []string
	for _, p := range known {
		if slices.Contains(now, p.Name) != held {
			change = append(change, p.Name)
		}
	}
	if len(change) == 0 {
		return nil
	}
	return a.mark(ctx, change, held)
}

func (a *Apt) mark(ctx context.Context, names []string, held bool) error {
	if err := a.waitLock(ctx); err != nil {
		return err
	}
	verb := "unhold"
	if held {
		verb = "hold"
	}
	args := append([]string{"-o", "DPkg::Lock::Timeout=60", verb, "--"}, names...)
	if _, err := a.run(ctx, queryTimeout+a.LockTimeout, a.apt("apt-mark", args...)); err != nil {
		return fmt.Errorf("running apt-mark %s: %w", verb, err)
	}
	now, err := a.Holds(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(now, name) != held {
			return fmt.Errorf("running apt-mark %s: it reported success, but the hold of %s did not change", verb, name)
		}
	}
	return nil
}
