package rpm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// mend makes the database whole before a transaction. What cannot be finished, but is to
// be replaced by this very transaction, is whole after it.
func (r *RPM) mend(ctx context.Context, changes []upgrade.PackageChange) error {
	repairErr := r.Repair(ctx)
	if repairErr == nil || ctx.Err() != nil {
		return repairErr
	}
	broken, err := r.Broken(ctx)
	if err != nil {
		return errors.Join(repairErr, err)
	}
	for _, name := range broken {
		if !slices.ContainsFunc(changes, func(c upgrade.PackageChange) bool { return c.Name == name && c.To != "" }) {
			return repairErr
		}
	}
	return nil
}

// Repair finishes what an interruption left half done: damaged indexes of the database are
// rebuilt, a transaction of ours is done to its end from its files, and of a package in
// two versions the older goes, as it would have gone. A database that stays broken is
// named; nothing else is to be touched then, and no reboot done.
func (r *RPM) Repair(ctx context.Context) error {
	if err := r.rebuild(ctx); err != nil {
		return err
	}
	broken, err := r.Broken(ctx)
	if err != nil || len(broken) == 0 {
		return err
	}
	if err := r.waitLock(ctx); err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("Repairing the package database", "packages", broken)
	finishErr := errors.Join(r.finish(ctx), r.removeOlder(ctx))
	if broken, err = r.Broken(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(err, finishErr)
	}
	if len(broken) > 0 {
		return refuse(upgrade.ReasonPackageDBBroken, "packages %s stay half installed after a repair: %v", strings.Join(broken, ", "), finishErr)
	}
	return nil
}

// rebuild makes the indexes of the database anew where one is damaged: rpm would say that
// a package is not installed, which must not be believed. It does so only while every
// package itself can be read: rpm's rebuild leaves out what it cannot read, and says
// nothing. Older versions of rpm also leave regions of a dead process behind, which keep
// everybody out until they are gone.
func (r *RPM) rebuild(ctx context.Context) error {
	if whole, err := r.whole(ctx); whole || err != nil {
		return err
	}
	if err := r.waitLock(ctx); err != nil {
		return err
	}
	// While another process was at work the database may only have seemed damaged.
	if whole, err := r.whole(ctx); whole || err != nil {
		return err
	}
	if err := r.removeRegions(); err != nil {
		return err
	}
	before, err := r.installed(ctx)
	if err != nil || len(before) == 0 {
		return refuse(upgrade.ReasonPackageDBBroken, "the package database is damaged, and not all packages in it can be read (%d can): restore it, a rebuild would lose the others: %v", len(before), err)
	}
	logr.FromContextOrDiscard(ctx).Info("Rebuilding the indexes of the package database, which are damaged")
	result, runErr := r.run(ctx, repairTimeout, r.rpm("rpmdb", "--rebuilddb"))
	after, err := r.installed(ctx)
	if err == nil && len(after) >= len(before) {
		if whole, err := r.whole(ctx); whole || err != nil {
			return err
		}
	}
	return refuse(upgrade.ReasonPackageDBBroken, "the package database is damaged, and rpmdb --rebuilddb did not help: %s",
		cmp.Or(command.Tail(result.Output(), 1000), fmt.Sprint(errors.Join(runErr, err))))
}

// whole says that the database can be read, all of it.
func (r *RPM) whole(ctx context.Context) (bool, error) {
	_, err := r.installed(ctx)
	if err == nil {
		_, err = r.run(ctx, repairTimeout, r.rpm("rpmdb", "--verifydb"))
	}
	if err != nil && (ctx.Err() != nil || command.ExitCode(err) < 0 && !errors.Is(err, errUnreadable)) {
		return false, fmt.Errorf("looking at the package database: %w", err)
	}
	return err == nil, nil
}

func (r *RPM) removeRegions() error {
	regions, err := filepath.Glob(r.path("var/lib/rpm/__db.*"))
	if err != nil {
		return fmt.Errorf("looking for regions of the package database: %w", err)
	}
	for _, region := range regions {
		if err := os.Remove(region); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a region of the package database: %w", err)
		}
	}
	return nil
}

// finish does a transaction of ours to its end, from the files that it was begun with.
func (r *RPM) finish(ctx context.Context) error {
	t, err := r.unfinished()
	if err != nil || t == nil {
		return err
	}
	if err := r.store().Verify(ctx, t.Changes, t.Dir); err != nil {
		return r.undamaged(ctx, t, err)
	}
	var runErr error
	for _, argv := range r.transactions(r.stillThere(ctx, t.Changes), t.Dir) {
		if _, runErr = r.run(ctx, r.InstallTimeout, argv, r.environment(t.Changes)...); runErr != nil {
			break
		}
	}
	if err := r.keepConfig(ctx, t.Config); err != nil {
		return errors.Join(runErr, err)
	}
	if runErr != nil && !ended(runErr) {
		return fmt.Errorf("finishing a transaction: %w", runErr)
	}
	// rpm came to its end: each package is in the old version or the new one, and whole.
	return r.undamaged(ctx, t, runErr)
}

// stillThere leaves out removals that are done: rpm would refuse them all for one.
func (r *RPM) stillThere(ctx context.Context, changes []upgrade.PackageChange) []upgrade.PackageChange {
	now, err := r.installed(ctx, packagefile.Names(changes)...)
	if err != nil {
		return changes
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c upgrade.PackageChange) bool {
		return c.To == "" && !slices.ContainsFunc(now, func(h header) bool { return h.name == c.Name })
	})
}

// changedFile says that a line of rpm -V is about a file whose content is not that of its
// package, and should be: configuration and files that a program makes are not such.
func changedFile(line string) bool {
	if len(line) < 12 || !strings.HasPrefix(line, "missing") && line[2] != '5' {
		return false
	}
	kind := strings.TrimSpace(line[9:])
	return !strings.HasPrefix(kind, "c ") && !strings.HasPrefix(kind, "g ")
}

// undamaged ends a transaction whose packages are whole all the same: as where it was cut
// off before rpm changed anything. why says what kept it from being finished; nil when nothing did.
func (r *RPM) undamaged(ctx context.Context, t *transaction, why error) error {
	if why == nil {
		return r.end()
	}
	now, err := r.installed(ctx, packagefile.Names(t.Changes)...)
	if err != nil {
		return errors.Join(why, err)
	}
	if len(duplicated(now)) > 0 {
		return why
	}
	for _, h := range now {
		result, err := r.run(ctx, repairTimeout, r.rpm("rpm", "-V", "--nodeps", "--noscripts", "--", h.nevra()))
		if err != nil && command.ExitCode(err) < 1 {
			return errors.Join(why, fmt.Errorf("verifying %s: %w", h.name, err))
		}
		for line := range strings.Lines(result.Stdout) {
			if changedFile(strings.TrimRight(line, "\n")) {
				return errors.Join(why, fmt.Errorf("%s is not whole: %s", h.nevra(), strings.TrimSpace(line)))
			}
		}
	}
	return r.end()
}

// removeOlder takes away what a cut-off transaction left beside the newer version. It is
// rpm's own removal: files that the newer version has too stay. A script that fails must
// not keep the database broken for ever, so the second try is without.
func (r *RPM) removeOlder(ctx context.Context) error {
	all, err := r.installed(ctx)
	if err != nil {
		return err
	}
	var problems error
	for _, name := range duplicated(all) {
		same := slices.DeleteFunc(slices.Clone(all), func(h header) bool { return h.name != name })
		for _, h := range same {
			newer := slices.ContainsFunc(same, func(o header) bool { return o.arch == h.arch && upgrade.CompareRPM(o.version, h.version) > 0 })
			if !newer {
				continue
			}
			_, err := r.run(ctx, repairTimeout, r.rpm("rpm", "-e", "--nodeps", "--", h.nevra()), r.quiet()...)
			if err != nil {
				_, err = r.run(ctx, repairTimeout, r.rpm("rpm", "-e", "--nodeps", "--noscripts", "--", h.nevra()), r.quiet()...)
			}
			if err != nil {
				problems = errors.Join(problems, fmt.Errorf("removing %s: %w", h.nevra(), err))
			}
		}
	}
	return problems
}
