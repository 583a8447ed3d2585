package rpm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Services are restarted by steps, in their order and under their grant, and by nothing
// else. Scriptlets of packages reach them through systemctl, directly or by way of the
// macros of systemd (%systemd_postun_with_restart and its helper), and systemctl does
// nothing while this is set. A script that ends a process by another way cannot be kept
// from it; the steps after the transaction look at what runs.
const offline = "SYSTEMD_OFFLINE=1"

// Install makes exactly these changes from files in a directory; nothing is fetched.
// Before it: the database is whole, the lock free, every digest right, the simulation as
// planned. After it: what rpm has decides, not the exit code. Changes that are there
// already are not made again.
func (r *RPM) Install(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	if err := checkChanges(changes); err != nil {
		return err
	}
	if err := r.mend(ctx, changes); err != nil {
		return err
	}
	left, err := r.left(ctx, changes)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := r.ready(ctx, left, dir); err != nil {
		return err
	}
	result, runErr := r.transact(ctx, left, dir)
	return r.judge(ctx, left, result, runErr)
}

func (r *RPM) ready(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	if err := r.store().Verify(ctx, changes, dir); err != nil {
		return err
	}
	if err := r.simulate(ctx, changes, dir); err != nil {
		return err
	}
	return r.waitLock(ctx)
}

// transact is the one moment in which packages change. The record of it stays until
// somebody has seen that it is whole.
func (r *RPM) transact(ctx context.Context, changes []upgrade.PackageChange, dir string) (command.Result, error) {
	t := transaction{Dir: dir, Changes: changes}
	before, err := r.unfinished()
	if err != nil {
		return command.Result{}, err
	}
	if before != nil { // the copies of then: the files may have been replaced since
		t.Config = before.Config
	} else if t.Config, err = r.snapshot(ctx, changes); err != nil {
		return command.Result{}, err
	}
	if err := r.begin(t); err != nil {
		return command.Result{}, err
	}
	var result command.Result
	for _, argv := range r.transactions(changes, dir) {
		if result, err = r.run(ctx, r.InstallTimeout, argv, r.environment(changes)...); err != nil {
			break
		}
	}
	return result, errors.Join(err, r.keepConfig(ctx, t.Config))
}

// environment of a transaction. One that only removes packages may stop their services:
// a daemon must not outlive its program.
func (r *RPM) environment(changes []upgrade.PackageChange) []string {
	if len(changes) > 0 && onlyRemovals(changes) {
		return nil
	}
	return r.quiet()
}

func (r *RPM) quiet() []string { return append([]string{offline}, r.dialect.quiet...) }

// judge decides by what is installed. A run that was ended from outside is first finished:
// the next one would find a package in two versions, or one whose script did not run.
func (r *RPM) judge(ctx context.Context, changes []upgrade.PackageChange, result command.Result, runErr error) error {
	// The context may be over, and that may be why the run ended.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTimeout)
	defer cancel()
	var repairErr error
	if runErr == nil || ended(runErr) { // rpm came to its end: what it did is whole
		repairErr = r.end()
	}
	if runErr != nil {
		repairErr = errors.Join(repairErr, r.Repair(after))
	}
	left, err := r.left(after, changes)
	if err != nil {
		return errors.Join(err, runErr, repairErr)
	}
	switch {
	case len(left) == 0 && repairErr == nil:
		return nil // whatever the exit code said
	case runErr != nil:
		return fmt.Errorf("installing packages: %w", errors.Join(runErr, repairErr))
	case repairErr != nil:
		return repairErr
	}
	return refuse("NotApplied", "rpm reported success, but %s is not at %s: %s", left[0].Name, cmp.Or(left[0].To, "absent"), command.Tail(result.Output(), 1000))
}

// ended says that a program came to its end by itself, with an exit code that is not 0.
func ended(err error) bool {
	var failure *command.Error
	return errors.As(err, &failure) && failure.ExitCode > 0 && !failure.Timeout
}
