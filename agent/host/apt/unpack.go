package apt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// unpackedSize is how much larger a package may be once it is unpacked.
const unpackedSize = 5

// Unpack puts the files of a staged package into a private directory, to look into or
// to ask one of its programs something. None of its scripts runs, and the host's
// package database knows nothing of it. remove takes the directory away; what a crash
// left there is gone at the next use.
func (a *Apt) Unpack(ctx context.Context, c upgrade.PackageChange) (dir string, remove func() error, err error) {
	private := filepath.Join(a.StageDir(), "unpacked")
	dir = filepath.Join(private, "root") // gets the mode that the package gives its root
	remove = func() error {
		if err := os.RemoveAll(private); err != nil {
			return fmt.Errorf("removing an unpacked package: %w", err)
		}
		return nil
	}
	if err := checkChanges([]upgrade.PackageChange{c}); err != nil {
		return "", nil, err
	}
	if err := a.verifyStaged(ctx, []upgrade.PackageChange{c}, a.StageDir()); err != nil {
		return "", nil, err
	}
	if err := errors.Join(remove(), files.PrivateDir(private), packagefile.Room(a.StageDir(), unpackedSize*c.Size)); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	argv := []string{"dpkg-deb", "--extract", filepath.Join(a.StageDir(), c.File), dir}
	if _, err := a.Runner.Run(ctx, command.Command{Argv: argv, Timeout: queryTimeout}); err != nil {
		return "", nil, errors.Join(fmt.Errorf("unpacking %s %s: %w", c.Name, c.To, err), remove())
	}
	return dir, remove, nil
}
