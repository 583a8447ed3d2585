package apt

import (
	"context"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Unpack puts the files of a staged package into a private directory, to look into or
// to ask one of its programs something.
func (a *Apt) Unpack(ctx context.Context, c upgrade.PackageChange) (dir string, remove func() error, err error) {
	if err := kind.CheckChange(c); err != nil {
		return "", nil, err
	}
	return a.store().Unpack(ctx, c, func(path, dir string) error {
		_, err := a.Runner.Run(ctx, command.Command{Argv: []string{"dpkg-deb", "--extract", path, dir}, Timeout: queryTimeout})
		return err //nolint:wrapcheck // the caller says what it was doing
	})
}
