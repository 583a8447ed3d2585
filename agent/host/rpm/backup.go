package rpm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// maxSearched bounds the index that is fetched only to find a package to go back to:
// those of Kubernetes and of the runtimes have some 100 KiB, a distribution's has megabytes.
const maxSearched = 8 << 20

// onHost finds the file of an installed version among what was staged before, and in
// the host's caches. Its signature is checked wherever it comes from.
func (r *RPM) onHost(ctx context.Context, name, version string) (string, error) {
	patterns := []string{filepath.Join(r.StageDir(), "*.rpm")}
	for _, cache := range r.dialect.caches {
		patterns = append(patterns, r.path(cache, name+"-*.rpm"))
	}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("looking for a package file: %w", err)
		}
		for _, path := range paths {
			if n, v, err := r.label(ctx, path); err == nil && n == name && v == version && r.trusted(ctx, path) {
				return path, nil
			}
		}
	}
	return "", nil
}

// trusted says whether a package file on the host is signed by a key of one of its sources, or one that rpm trusts.
func (r *RPM) trusted(ctx context.Context, path string) bool {
	signers := []string{""}
	for _, o := range r.origins() {
		signers = append(signers, o.SignedBy)
	}
	for _, signedBy := range signers {
		rings, err := r.keys(ctx, signedBy)
		if err == nil && r.checkPackage(ctx, path, rings) == nil {
			return true
		}
	}
	return false
}

// search finds a version in the repositories of the host: first in the host's own copies of
// their indexes, which cost nothing, then in the small ones themselves.
func (r *RPM) search(ctx context.Context, name, version string) (upgrade.Candidate, error) {
	repos, err := r.repos()
	if err != nil {
		return upgrade.Candidate{}, err
	}
	var problems error
	for _, p := range repos {
		if found, known := r.cached(ctx, p, []string{name}); known && len(found) == 0 {
			continue // nothing to be found there
		}
		ix, err := r.load(ctx, repository{name: p.id, uri: p.uri, signedBy: p.facts().SignedBy, host: &p}, maxSearched)
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		found, err := candidatesIn(ix.path, ix.base, []string{name})
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		for _, c := range found {
			if c.Version == version {
				return c, nil
			}
		}
	}
	return upgrade.Candidate{}, errors.Join(errors.New("no package source that is configured on the host offers it any more"), problems)
}

// Find is the kept file of a package version, relative to the backup directory, and its
// digest; fs.ErrNotExist when it was not kept.
func (r *RPM) Find(_ context.Context, name, version string) (file, sha256 string, err error) {
	return r.store().Find(name, version)
}
