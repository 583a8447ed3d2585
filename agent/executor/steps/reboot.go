package steps

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// rebootPolls is how long, in polls, a host may take to go down before the reboot is asked for again.
const rebootPolls = 1200

// maxReboots bounds how often one step asks for a reboot, over all attempts.
const maxReboots = 2

// reboot is done when the boot is another one than that in which the step was begun;
// nothing else proves it. It is asked for at most twice: a host that goes down and
// comes back with the same boot id would be rebooted for ever.
func reboot(ctx context.Context, r Run) (string, error) {
	boot, err := r.Host.Boot.ID(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	if r.BeganInBoot == "" {
		return "", fail("RebootFailed", "the boot in which the reboot was asked for is not recorded; a reboot could not be told from none")
	}
	if boot != r.BeganInBoot {
		return "rebooted, boot " + boot, nil
	}
	if err := bootable(ctx, r); err != nil {
		return "", err
	}
	for asked := r.Attempt - 1; asked < maxReboots; asked++ {
		if err := r.Host.Boot.Reboot(ctx); err != nil {
			return "", fmt.Errorf("asking for a reboot: %w", err)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err() // the host goes down, and this process with it
		case <-time.After(rebootPolls * r.Poll):
		}
	}
	return "", fail("RebootFailed", "the host is still in boot %s although a reboot was asked for %d times", boot, maxReboots)
}

// bootable refuses to go down on packages that are half done: a kernel without its
// initramfs does not come up again. A repair is tried, as before a transaction.
func bootable(ctx context.Context, r Run) error {
	for repaired := false; ; repaired = true {
		facts, err := r.Host.Facts.Facts(ctx, nil)
		if err != nil {
			return fmt.Errorf("reading the facts of the host: %w", err)
		}
		broken := facts.Packages.Broken
		if len(broken) == 0 {
			return nil
		}
		if repaired {
			return fail("PackageDBBroken", "packages %s are half installed or half configured, and a host is not rebooted like that: see `dpkg --audit`, or on dnf hosts `rpm -Va`", strings.Join(broken, ", "))
		}
		if err := r.Host.Packages.Repair(ctx); err != nil {
			return fmt.Errorf("repairing the package database before a reboot: %w", err)
		}
	}
}
