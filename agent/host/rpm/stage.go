package rpm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Stage makes everything ready that the changes need, without changing the host: the
// exact files in the stage directory, the files to go back to in the backup directory,
// and a simulation of the transaction. Findings are warnings; a refusal is an
// upgrade.Blocked, and any other error may pass.
func (r *RPM) Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	if err := checkChanges(changes); err != nil {
		return nil, err
	}
	if err := r.stageDirs(); err != nil {
		return nil, err
	}
	if err := r.prune(changes, time.Now()); err != nil {
		return nil, fmt.Errorf("removing package files of earlier plans: %w", err)
	}
	if err := packagefile.Room(r.StageDir(), packagefile.Missing(r.StageDir(), changes)); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		if err := r.obtain(ctx, c.URI, c.SHA256, filepath.Join(r.StageDir(), c.File)); err != nil {
			return nil, fmt.Errorf("staging package %s %s: %w", c.Name, c.To, err)
		}
	}
	findings, err := r.keepPrevious(ctx, changes)
	if err != nil {
		return findings, err
	}
	return findings, r.simulate(ctx, changes, r.StageDir())
}

// obtain fetches a package, with the digest that the metadata gives, and checks its signature.
func (r *RPM) obtain(ctx context.Context, uri, sha256, target string) error {
	from, a, err := r.originOf(uri)
	if err != nil {
		return err
	}
	if err := r.fetch(ctx, a, uri, sha256, target); err != nil {
		return err
	}
	rings, err := r.keys(ctx, from.SignedBy)
	if err != nil {
		return err
	}
	return r.checkPackage(ctx, target, rings)
}

func (r *RPM) stageDirs() error {
	if err := os.MkdirAll(r.StageDir(), 0o755); err != nil {
		return fmt.Errorf("making the stage directory: %w", err)
	}
	return errors.Join(files.PrivateDir(r.state("rpm")), files.PrivateDir(r.BackupDir()))
}

// verifyStaged looks at every file right before it is used: digest, name and version.
func (r *RPM) verifyStaged(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		path := filepath.Join(dir, c.File)
		if err := packagefile.Verify(path, c.SHA256); err != nil {
			return fmt.Errorf("checking the staged package %s %s: %w", c.Name, c.To, err)
		}
		name, version, err := r.label(ctx, path)
		if err != nil {
			return err
		}
		if name != c.Name || version != c.To {
			return refuse("PackageMismatch", "the file staged for %s %s is %s %s: the metadata of the repository does not tell the truth", c.Name, c.To, name, version)
		}
	}
	return nil
}

// prune removes what no plan and no rollback will ask for any more, so that a host that
// is upgraded for years does not fill up.
func (r *RPM) prune(changes []upgrade.PackageChange, now time.Time) error {
	needed := map[string]bool{}
	for _, c := range changes {
		needed[c.File] = true
		needed[fileName(c.Name, c.From)] = true
	}
	return errors.Join(
		packagefile.RemoveUnneeded(r.StageDir(), now.Add(-packagefile.StagedFor), packagefile.MaxUnneeded, needed),
		packagefile.RemoveUnneeded(r.BackupDir(), now.Add(-packagefile.KeptFor), packagefile.MaxUnneeded, needed),
		packagefile.RemoveUnneeded(r.state("rpm/download"), now.Add(-packagefile.StagedFor), packagefile.MaxUnneeded, nil),
	)
}
