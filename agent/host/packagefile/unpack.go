package packagefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// unpackedSize is how much larger a package may be once it is unpacked.
const unpackedSize = 5

// Unpack puts the files of a staged package into a private directory, to look into or to
// ask one of its programs something. The package manager extracts them, runs none of its
// scripts and tells the host's database nothing. remove takes the directory away; what a
// crash left there is gone at the next use.
func (s Store) Unpack(ctx context.Context, c upgrade.PackageChange, extract func(path, dir string) error) (dir string, remove func() error, err error) {
	private := filepath.Join(s.StageDir, "unpacked")
	dir = filepath.Join(private, "root") // gets the mode that the package gives its root
	remove = func() error {
		if err := os.RemoveAll(private); err != nil {
			return fmt.Errorf("removing an unpacked package: %w", err)
		}
		return nil
	}
	if err := s.Verify(ctx, []upgrade.PackageChange{c}, s.StageDir); err != nil {
		return "", nil, err
	}
	if err := errors.Join(remove(), files.PrivateDir(private), Room(s.StageDir, unpackedSize*c.Size)); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	if err := extract(filepath.Join(s.StageDir, c.File), dir); err != nil {
		return "", nil, errors.Join(fmt.Errorf("unpacking %s %s: %w", c.Name, c.To, err), remove())
	}
	return dir, remove, nil
}
