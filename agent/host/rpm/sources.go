package rpm

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Sources are the configured repositories that are enabled, each with those of the named
// packages that the host's own copy of its index offers, or that it offered Refit where the
// host has no copy. Nothing is fetched.
func (r *RPM) Sources(ctx context.Context, packages []string) ([]upgrade.SourceFacts, error) {
	repos, err := r.repos()
	if err != nil {
		return nil, err
	}
	remembered := r.offers().Remembered(ctx)
	facts := make([]upgrade.SourceFacts, 0, len(repos))
	for _, p := range repos {
		f := p.facts()
		names, known := r.cached(ctx, p, packages)
		if !known {
			names = remembered[strings.TrimSuffix(p.uri, "/")]
		}
		for _, name := range names {
			if slices.Contains(packages, name) && !slices.Contains(f.Provides, name) {
				f.Provides = append(f.Provides, name)
			}
		}
		slices.Sort(f.Provides)
		facts = append(facts, f)
	}
	return facts, nil
}

// Indexes are what the configured repositories offer of some packages, from the host's own
// copies of their indexes. Nothing is fetched: a repository without a copy is left out.
func (r *RPM) Indexes(ctx context.Context, packages []string) ([]upgrade.IndexFacts, error) {
	repos, err := r.repos()
	if err != nil {
		return nil, err
	}
	var facts []upgrade.IndexFacts
	for _, p := range repos {
		offer := upgrade.IndexFacts{URI: p.uri, Packages: packages}
		known := r.eachCopy(ctx, p, func(path string) error {
			found, err := candidatesIn(path, p.place(p.uri), packages)
			offer.Candidates = append(offer.Candidates, found...)
			return err
		})
		if known {
			facts = append(facts, offer)
		}
	}
	return facts, nil
}

// cached are those of the packages that the host's own copy of a repository's index names; known is false where there is none.
func (r *RPM) cached(ctx context.Context, p repo, packages []string) (found []string, known bool) {
	known = r.eachCopy(ctx, p, func(path string) error {
		in, err := namesIn(path, packages)
		found = append(found, in...)
		return err
	})
	return found, known
}

// eachCopy reads the host's own copy of a repository's index; false where there is none that can be read.
func (r *RPM) eachCopy(ctx context.Context, p repo, read func(path string) error) bool {
	for _, pattern := range r.dialect.copies(p.section) {
		paths, err := filepath.Glob(r.path(pattern))
		if err != nil || len(paths) == 0 {
			continue // an id with a pattern's characters in it is one without a copy
		}
		for _, path := range paths {
			if err := read(path); err != nil { // damaged, or half written by a program that runs now: a copy is only a hint
				logr.FromContextOrDiscard(ctx).Info("Passing over a copy of a package index", "file", path, "reason", err.Error())
				return false
			}
		}
		return true
	}
	return false
}
