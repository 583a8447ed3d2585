package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// keepPrevious makes sure that there is a file to go back to for every package that
// is replaced or removed. What cannot be had is a warning: it says beforehand what a
// rollback could not do.
func (a *Apt) keepPrevious(ctx context.Context, changes []upgrade.PackageChange) ([]upgrade.Finding, error) {
	var findings []upgrade.Finding
	for _, c := range changes {
		if c.From == "" || c.From == c.To {
			continue
		}
		err := a.keep(ctx, c.Name, c.From)
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

// keep looks for the file of an installed version where it may be: kept before,
// staged before, in apt's cache, in an index on the host.
func (a *Apt) keep(ctx context.Context, name, version string) error {
	if _, _, err := a.Find(ctx, name, version); err == nil {
		return nil
	}
	target := filepath.Join(a.BackupDir(), fileName(name, version))
	for _, dir := range []string{a.StageDir(), a.path("var/cache/apt/archives")} {
		path, err := a.search(ctx, dir, name, version)
		if err != nil {
			return err
		}
		if path != "" {
			return packagefile.Record(target, path)
		}
	}
	candidate, err := a.indexed(ctx, name, version)
	if err != nil {
		return err
	}
	if err := a.fetch(ctx, candidate.URI(), candidate.SHA256, target); err != nil {
		return err
	}
	return packagefile.Seal(target)
}

// Find is the kept file of a package version, relative to the backup directory, and
// its digest; fs.ErrNotExist when it was not kept.
func (a *Apt) Find(_ context.Context, name, version string) (file, sha256 string, err error) {
	if !validName.MatchString(name) || !validVersion.MatchString(version) {
		return "", "", refuse("PackageInvalid", "package %q %q is not a name and a version of dpkg", name, version)
	}
	file = fileName(name, version)
	if sha256, err = packagefile.Sealed(filepath.Join(a.BackupDir(), file)); err != nil {
		return "", "", fmt.Errorf("looking for the kept package %s %s: %w", name, version, err)
	}
	return file, sha256, nil
}

// fileName is how a kept file is called; ':' of an epoch is escaped as apt does.
func fileName(name, version string) string {
	return name + "_" + strings.ReplaceAll(version, ":", "%3a") + ".deb"
}

// search finds a package file by what it contains, since staged files are named by digest.
func (a *Apt) search(ctx context.Context, dir, name, version string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking for a package file: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if !mayBe(entry.Name(), name) {
			continue
		}
		if n, v, err := a.control(ctx, path); err == nil && n == name && v == version {
			return path, nil
		}
	}
	return "", nil
}

// mayBe is true for apt's own name of the package and for files named by digest.
func mayBe(file, name string) bool {
	base, isDeb := strings.CutSuffix(file, ".deb")
	return isDeb && (strings.HasPrefix(base, name+"_") || validDigest.MatchString(base))
}

// indexed finds a version in the indexes that are on the host or were fetched for the plan.
func (a *Apt) indexed(ctx context.Context, name, version string) (upgrade.Candidate, error) {
	arch, err := a.architecture(ctx)
	if err != nil {
		return upgrade.Candidate{}, err
	}
	for _, options := range [][]string{a.private(), nil} {
		indexes, err := a.indexes(ctx, options...)
		if err != nil {
			return upgrade.Candidate{}, err
		}
		for _, ix := range indexes {
			found, err := a.candidatesIn(ctx, ix, arch, []string{name})
			if err != nil {
				return upgrade.Candidate{}, err
			}
			for _, c := range found {
				if c.Version == version {
					return c, nil
				}
			}
		}
	}
	return upgrade.Candidate{}, errors.New("no package source that is configured on the host offers it any more")
}
