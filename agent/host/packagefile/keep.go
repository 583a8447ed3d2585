package packagefile

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// keepPrevious makes sure that there is a file to go back to for every package that is
// replaced or removed. What cannot be had is a warning: it says beforehand what a
// rollback could not do.
func (s Store) keepPrevious(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	var findings []upgrade.Finding
	for _, c := range changes {
		if c.From == "" || c.From == c.To {
			continue
		}
		err := s.keep(ctx, c.Name, c.From)
		if err != nil && ctx.Err() != nil {
			return findings, err
		}
		if err != nil {
			findings = append(findings, upgrade.Finding{
				Severity: upgrade.SeverityWarning, Reason: upgrade.FindingNoRollbackPackage,
				Message: fmt.Sprintf("%s %s could not be kept, so this package cannot go back if the change fails: %v", c.Name, c.From, err),
			})
		}
	}
	return findings, nil
}

// keep looks for the file of an installed version where it may be: kept before, on the
// host, in a repository.
func (s Store) keep(ctx context.Context, name, version string) error {
	if _, _, err := s.Find(name, version); err == nil {
		return nil
	}
	target := filepath.Join(s.BackupDir, s.FileName(name, version))
	path, err := s.OnHost(ctx, name, version)
	if err != nil {
		return err
	}
	if path != "" {
		return Record(target, path)
	}
	candidate, err := s.Offered(ctx, name, version)
	if err != nil {
		return err
	}
	if err := s.Obtain(ctx, candidate.URI(), candidate.SHA256, target); err != nil {
		return err
	}
	return Seal(target)
}

// Find is the kept file of a package version, relative to the backup directory, and its
// digest; fs.ErrNotExist when it was not kept.
func (s Store) Find(name, version string) (file, sha256 string, err error) {
	if !s.Name.MatchString(name) || !s.Version.MatchString(version) {
		return "", "", Refuse("PackageInvalid", "package %q %q: want %s, and %s", name, version, s.NameRule, s.VersionRule)
	}
	file = s.FileName(name, version)
	if sha256, err = Sealed(filepath.Join(s.BackupDir, file)); err != nil {
		return "", "", fmt.Errorf("looking for the kept package %s %s: %w", name, version, err)
	}
	return file, sha256, nil
}
