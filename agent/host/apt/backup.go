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

// Find is the kept file of a package version, relative to the backup directory, and
// its digest; fs.ErrNotExist when it was not kept.
func (a *Apt) Find(_ context.Context, name, version string) (file, sha256 string, err error) {
	return a.store().Find(name, version)
}

// onHost finds the file of an installed version among what was staged before, and in apt's cache.
func (a *Apt) onHost(ctx context.Context, name, version string) (string, error) {
	for _, dir := range []string{a.StageDir(), a.path("var/cache/apt/archives")} {
		if path, err := a.search(ctx, dir, name, version); err != nil || path != "" {
			return path, err
		}
	}
	return "", nil
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
	return isDeb && (strings.HasPrefix(base, name+"_") || packagefile.Digest.MatchString(base))
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
