package apt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Stage makes everything ready that the changes need, without changing the host: the
// exact files in the stage directory, the files to go back to in the backup
// directory, and a simulation of the transaction. Findings are warnings; a refusal is
// an upgrade.Blocked, and any other error may pass.
func (a *Apt) Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	if err := checkChanges(changes); err != nil {
		return nil, err
	}
	if err := a.stageDirs(); err != nil {
		return nil, err
	}
	if err := a.prune(changes, time.Now()); err != nil {
		return nil, fmt.Errorf("removing package files of earlier plans: %w", err)
	}
	if err := packagefile.Room(a.StageDir(), packagefile.Missing(a.StageDir(), changes)); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		if err := a.fetch(ctx, c.URI, c.SHA256, filepath.Join(a.StageDir(), c.File)); err != nil {
			return nil, fmt.Errorf("staging package %s %s: %w", c.Name, c.To, err)
		}
	}
	findings, err := a.keepPrevious(ctx, changes)
	if err != nil {
		return findings, err
	}
	return findings, a.simulate(ctx, changes, a.StageDir(), true)
}

func (a *Apt) stageDirs() error {
	if err := os.MkdirAll(a.StageDir(), 0o755); err != nil {
		return fmt.Errorf("making the stage directory: %w", err)
	}
	return files.PrivateDir(a.BackupDir())
}

// verifyStaged looks at every file right before it is used: digest, name and version.
func (a *Apt) verifyStaged(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		path := filepath.Join(dir, c.File)
		if err := packagefile.Verify(path, c.SHA256); err != nil {
			return fmt.Errorf("checking the staged package %s %s: %w", c.Name, c.To, err)
		}
		name, version, err := a.control(ctx, path)
		if err != nil {
			return err
		}
		if name != c.Name || version != c.To {
			return refuse("PackageMismatch", "the file staged for %s %s is %s %s: the index of the repository does not tell the truth", c.Name, c.To, name, version)
		}
	}
	return nil
}

func cutTwo(text string) (first, second string, err error) {
	fields := strings.Split(text, "\t")
	if len(fields) < 2 {
		return "", "", errors.New("reading a package file: no name and version in it")
	}
	return fields[0], fields[1], nil
}
