package rpm

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

// Unpack puts the files of a staged package into a private directory, to look into or to
// ask one of its programs something. None of its scripts runs, and the host's package
// database knows nothing of it: the directory has one of its own. remove takes the
// directory away; what a crash left there is gone at the next use.
func (r *RPM) Unpack(ctx context.Context, c upgrade.PackageChange) (dir string, remove func() error, err error) {
	private := filepath.Join(r.StageDir(), "unpacked")
	dir = filepath.Join(private, "root")
	remove = func() error {
		if err := os.RemoveAll(private); err != nil {
			return fmt.Errorf("removing an unpacked package: %w", err)
		}
		return nil
	}
	if err := checkChanges([]upgrade.PackageChange{c}); err != nil {
		return "", nil, err
	}
	if err := r.verifyStaged(ctx, []upgrade.PackageChange{c}, r.StageDir()); err != nil {
		return "", nil, err
	}
	if err := errors.Join(remove(), files.PrivateDir(private), files.PrivateDir(dir), packagefile.Room(r.StageDir(), unpackedSize*c.Size)); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	argv := []string{
		"rpm", "--root=" + dir, "--dbpath=/var/lib/rpm", "-i", "--nodeps", "--noscripts", "--notriggers", "--noplugins", "--nosignature",
		"--", filepath.Join(r.StageDir(), c.File),
	}
	if _, err := r.Runner.Run(ctx, command.Command{Argv: argv, Timeout: repairTimeout}); err != nil {
		return "", nil, errors.Join(fmt.Errorf("unpacking %s %s: %w", c.Name, c.To, err), remove())
	}
	return dir, remove, nil
}
