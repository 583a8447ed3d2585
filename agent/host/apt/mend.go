package apt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// mend makes the database whole before a transaction. Crash window: a host that is
// reset while a package is unpacked has it half-installed, which configuring cannot
// cure; only unpacking it again can. The transaction is about to install that very
// package, so its verified file is used, and no other package is touched.
func (a *Apt) mend(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	broken, err := a.Broken(ctx)
	if err != nil || len(broken) == 0 {
		return err
	}
	repairErr := a.Repair(ctx)
	if repairErr == nil {
		return nil
	}
	halves, err := a.halfInstalled(ctx, changes)
	if err != nil || len(halves) == 0 {
		return errors.Join(repairErr, err)
	}
	if err := a.unpackAgain(ctx, halves, dir); err != nil {
		return errors.Join(repairErr, err)
	}
	return a.Repair(ctx)
}

// halfInstalled are those of the changes whose package was cut off while it was unpacked.
func (a *Apt) halfInstalled(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.PackageChange, error) {
	now, err := a.Query(ctx, packagefile.Names(changes))
	if err != nil {
		return nil, err
	}
	state := make(map[string]string, len(now))
	for _, p := range now {
		state[p.Name] = p.State
	}
	var halves []upgrade.PackageChange
	for _, c := range changes {
		if state[c.Name] == "half-installed" && c.To != "" {
			halves = append(halves, c)
		}
	}
	return halves, nil
}

func (a *Apt) unpackAgain(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	if err := a.store().Verify(ctx, changes, dir); err != nil {
		return err
	}
	if err := a.waitLock(ctx); err != nil {
		return err
	}
	env, restore, err := a.noRestarts(changes)
	if err != nil {
		return err
	}
	args := []string{"--force-confdef", "--force-confold", "--install"}
	for _, c := range changes {
		args = append(args, filepath.Join(dir, c.File))
	}
	logr.FromContextOrDiscard(ctx).Info("Unpacking again what was cut off", "packages", packagefile.Names(changes))
	result, runErr := a.run(ctx, a.InstallTimeout, a.dpkg(args...), append(env, quiet...)...)
	if runErr != nil {
		runErr = fmt.Errorf("unpacking %s again: %w: %s", strings.Join(packagefile.Names(changes), ", "), runErr, command.Tail(result.Output(), 1000))
	}
	return errors.Join(runErr, restore())
}
