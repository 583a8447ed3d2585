package packagefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Store has the package files of a host, and what its package manager knows of them.
type Store struct {
	Kind
	// StageDir holds the files that a plan installs, BackupDir those it would go back to.
	StageDir, BackupDir string
	// Downloads holds what is not verified yet.
	Downloads string
	// Obtain puts the file of a URI to a path; what is there afterwards has the digest and is signed.
	Obtain func(ctx context.Context, uri, sha256, target string) error
	// Label is name and version of a package file.
	Label func(ctx context.Context, path string) (name, version string, err error)
	// OnHost finds a file of a version in a cache of the host; "" for none.
	OnHost func(ctx context.Context, name, version string) (path string, err error)
	// Offered finds a version in the repositories of the host.
	Offered func(ctx context.Context, name, version string) (upgrade.Candidate, error)
}

// Stage has the exact files of the changes in the stage directory, and those to go back
// to in the backup directory. Findings are warnings.
func (s Store) Stage(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	if err := s.MakeDirs(); err != nil {
		return nil, err
	}
	if err := s.Prune(changes, time.Now()); err != nil {
		return nil, fmt.Errorf("removing package files of earlier plans: %w", err)
	}
	if err := Room(s.StageDir, Missing(s.StageDir, changes)); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		if err := s.Obtain(ctx, c.URI, c.SHA256, filepath.Join(s.StageDir, c.File)); err != nil {
			return nil, fmt.Errorf("staging package %s %s: %w", c.Name, c.To, err)
		}
	}
	return s.keepPrevious(ctx, changes)
}

// MakeDirs makes the directories; what is kept is private to root.
func (s Store) MakeDirs() error {
	if err := os.MkdirAll(s.StageDir, 0o755); err != nil {
		return fmt.Errorf("making the stage directory: %w", err)
	}
	return files.PrivateDir(s.BackupDir)
}

// Verify looks at every file right before it is used: digest, name and version.
func (s Store) Verify(ctx context.Context, changes []upgrade.PackageChange, dir string) error {
	for _, c := range changes {
		if c.To == "" {
			continue
		}
		path := filepath.Join(dir, c.File)
		if err := Verify(path, c.SHA256); err != nil {
			return fmt.Errorf("checking the staged package %s %s: %w", c.Name, c.To, err)
		}
		name, version, err := s.Label(ctx, path)
		if err != nil {
			return err
		}
		if name != c.Name || version != c.To {
			return Refuse("PackageMismatch", "the file staged for %s %s is %s %s: the index of the repository does not tell the truth", c.Name, c.To, name, version)
		}
	}
	return nil
}

// Prune removes what no plan and no rollback will ask for any more, so that a host that
// is upgraded for years does not fill up.
func (s Store) Prune(changes []upgrade.PackageChange, now time.Time) error {
	needed := map[string]bool{}
	for _, c := range changes {
		needed[c.File] = true
		needed[s.FileName(c.Name, c.From)] = true
	}
	return errors.Join(
		RemoveUnneeded(s.StageDir, now.Add(-StagedFor), MaxUnneeded, needed),
		RemoveUnneeded(s.BackupDir, now.Add(-KeptFor), MaxUnneeded, needed),
		RemoveUnneeded(s.Downloads, now.Add(-StagedFor), MaxUnneeded, nil),
	)
}
