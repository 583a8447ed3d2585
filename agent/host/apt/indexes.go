package apt

import (
	"context"
	"slices"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Indexes are what the configured sources offer of some packages, from the indexes that
// the host has of them. Nothing is fetched: a source without an index is left out.
func (a *Apt) Indexes(ctx context.Context, packages []string) ([]upgrade.IndexFacts, error) {
	entries, err := a.entries()
	if err != nil {
		return nil, err
	}
	indexes, err := a.indexes(ctx)
	if err != nil {
		return nil, err
	}
	arch, err := a.architecture(ctx)
	if err != nil {
		return nil, err
	}
	var facts []upgrade.IndexFacts
	for _, e := range entries {
		offer := upgrade.IndexFacts{URI: e.URI, Suites: e.Suites, Components: e.Components, Packages: packages}
		known := false
		for _, ix := range indexes {
			if !a.belongs(ix, e, entries) {
				continue
			}
			known = true
			ix.base = e.URI
			found, err := a.candidatesIn(ctx, ix, arch, packages)
			if err != nil {
				return nil, err
			}
			offer.Candidates = append(offer.Candidates, found...)
		}
		if known {
			facts = append(facts, offer)
		}
	}
	return facts, nil
}

// belongs says whether an index is of an entry; entries of one stanza are told apart by their address.
func (a *Apt) belongs(ix index, e entry, all []entry) bool {
	if strings.TrimPrefix(ix.source, strings.TrimSuffix(a.Root, "/")) != e.key {
		return false
	}
	shared := slices.ContainsFunc(all, func(o entry) bool { return o.key == e.key && o.URI != e.URI })
	return !shared || sameURI(ix.base, e.URI)
}
