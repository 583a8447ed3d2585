package rpm

import (
	"context"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Unpack puts the files of a staged package into a private directory, to look into or to
// ask one of its programs something. It gets a package database of its own.
func (r *RPM) Unpack(ctx context.Context, c upgrade.PackageChange) (dir string, remove func() error, err error) {
	if err := checkChanges([]upgrade.PackageChange{c}); err != nil {
		return "", nil, err
	}
	return r.store().Unpack(ctx, c, func(path, dir string) error {
		if err := files.PrivateDir(dir); err != nil {
			return err
		}
		argv := []string{
			"rpm", "--root=" + dir, "--dbpath=/var/lib/rpm", "-i", "--nodeps", "--noscripts", "--notriggers", "--noplugins", "--nosignature", "--", path,
		}
		_, err := r.Runner.Run(ctx, command.Command{Argv: argv, Timeout: repairTimeout})
		return err //nolint:wrapcheck // the caller says what it was doing
	})
}
