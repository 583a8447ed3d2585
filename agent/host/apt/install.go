package apt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// quiet keeps every known dialog away and every restart to ourselves: debconf,
// needrestart (list only), ucf and apt-listchanges.
var quiet = []string{
	"DEBIAN_FRONTEND=noninteractive",
	"DEBIAN_PRIORITY=critical",
	"NEEDRESTART_MODE=l",
	"NEEDRESTART_SUSPEND=1",
	"UCF_FORCE_CONFFOLD=1",
	"APT_LISTCHANGES_FRONTEND=none",
}

// Install makes exactly these changes in one transaction from files in a directory;
// nothing is fetched. Before it: the database is whole, the lock free, every digest
// right, the simulation as planned. After it: what dpkg has decides, not the exit
// code. Changes that are there already are not made again.
func (a *Apt) Install(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	if err := kind.CheckChanges(changes); err != nil {
		return err
	}
	if err := a.mend(ctx, changes, dir); err != nil {
		return err
	}
	left, err := a.left(ctx, changes)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := a.ready(ctx, left, dir); err != nil {
		return err
	}
	result, runErr := a.transact(ctx, left, dir)
	return a.judge(ctx, left, result, runErr)
}

func (a *Apt) ready(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	if err := a.store().Verify(ctx, changes, dir); err != nil {
		return err
	}
	if err := a.simulate(ctx, changes, dir, false); err != nil {
		return err
	}
	return a.waitLock(ctx)
}

// transact is the one moment in which packages change.
func (a *Apt) transact(ctx context.Context, changes []upgrade.PackageChange, dir string) (command.Result, error) {
	args, err := a.transaction(ctx, changes, dir)
	if err != nil {
		return command.Result{}, err
	}
	env, restore, err := a.noRestarts(changes)
	if err != nil {
		return command.Result{}, err
	}
	result, runErr := a.run(ctx, a.InstallTimeout, a.apt("apt-get", args...), append(env, quiet...)...)
	return result, errors.Join(runErr, restore())
}

// judge decides by what is installed. After a failure it first finishes what was
// left half done: the next run would not start otherwise.
func (a *Apt) judge(ctx context.Context, changes []upgrade.PackageChange, result command.Result, runErr error) error {
	// The context may be over, and that may be why the run ended.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTimeout)
	defer cancel()
	var repairErr error
	if runErr != nil {
		repairErr = a.Repair(after)
	}
	left, err := a.left(after, changes)
	if err != nil {
		return errors.Join(err, runErr, repairErr)
	}
	a.reportConfigFiles(after, changes)
	switch {
	case len(left) == 0 && repairErr == nil:
		return nil // whatever the exit code said
	case runErr != nil:
		return lockOr(result, fmt.Errorf("installing packages: %w", errors.Join(transactionFailure(result, runErr), repairErr)))
	}
	return refuse(upgrade.FindingTransactionLeavesAsItIs, "apt reported success, but %s is not at %s; held, phased or kept back: %s", left[0].Name, cmp.Or(left[0].To, "absent"), command.Tail(result.Output(), 1000))
}

// lockOr tells a lock that was taken between our look and apt's from a real failure.
func lockOr(result command.Result, err error) error {
	if strings.Contains(result.Stderr, "Could not get lock") || strings.Contains(result.Stderr, "Unable to acquire the dpkg frontend lock") {
		return wait("PackageLockHeld", "%s", complaints(result.Stderr))
	}
	return err
}

// left are the changes that are not there yet.
func (a *Apt) left(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.PackageChange, error) {
	now, err := a.Query(ctx, packagefile.Names(changes))
	if err != nil {
		return nil, err
	}
	return packagefile.Left(changes, now), nil
}

// Repair finishes what an interruption left half done, keeping the host's
// configuration files. A database that stays broken is named; nothing else is to be
// touched then, and no reboot done.
func (a *Apt) Repair(ctx context.Context) error {
	broken, err := a.Broken(ctx)
	if err != nil || len(broken) == 0 {
		return err
	}
	if err := a.waitLock(ctx); err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx)
	log.Info("Repairing the package database", "packages", broken)
	env, restore, err := a.noRestarts(nil)
	if err != nil {
		return err
	}
	result, runErr := a.run(ctx, repairTimeout, a.dpkg("--force-confdef", "--force-confold", "--configure", "-a"), append(env, quiet...)...)
	restoreErr := restore()
	broken, err = a.Broken(context.WithoutCancel(ctx))
	if err != nil {
		return errors.Join(err, runErr, restoreErr)
	}
	if len(broken) > 0 {
		return refuse("PackageDBBroken", "packages %s stay half installed after dpkg --configure -a: %s", strings.Join(broken, ", "), command.Tail(result.Output(), 1000))
	}
	return restoreErr
}

// reportConfigFiles names the configuration files that a package brought in a new
// version and that were kept as they are: somebody should look at them.
func (a *Apt) reportConfigFiles(ctx context.Context, changes []upgrade.PackageChange) {
	result, err := a.run(ctx, queryTimeout, append([]string{"dpkg-query", "--admindir=" + a.dpkgDir(), "-W", "-f", "${Conffiles}\n", "--"}, packagefile.Names(changes)...))
	if err != nil && command.ExitCode(err) != 1 {
		return // only information
	}
	log := logr.FromContextOrDiscard(ctx)
	for line := range strings.Lines(result.Stdout) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		for _, suffix := range []string{".dpkg-dist", ".dpkg-new"} {
			if _, err := os.Stat(a.path(fields[0] + suffix)); err == nil {
				log.Info("Kept a configuration file that its package has changed", "file", fields[0], "packaged", fields[0]+suffix)
			}
		}
	}
}
