package rpm

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/packagefile"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Candidates fetches the signed metadata of the sources in a request and returns what
// they offer of its packages. What dnf would not see, for an exclude= in a repository's
// file or a version lock, is offered too: the plan is what may change these packages.
func (r *RPM) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	if err := kind.CheckNames(request.Packages); err != nil {
		return nil, err
	}
	if request.Security {
		return r.securityUpdates(ctx, request.Packages)
	}
	if err := files.PrivateDir(r.state("rpm")); err != nil {
		return nil, err
	}
	repos, err := r.repos()
	if err != nil {
		return nil, err
	}
	var all, remembered []upgrade.Candidate
	for _, source := range request.Sources {
		ix, err := r.load(ctx, repository{name: source.Name, uri: source.URI, signedBy: source.SignedBy, host: hostOf(repos, source.URI)}, maxPrimary)
		if err != nil {
			return nil, err
		}
		found, err := candidatesIn(ix.path, ix.base, request.Packages)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		for _, c := range found { // under the URI that the planner knows
			c.Source = source.URI
			remembered = append(remembered, c)
		}
	}
	old := time.Now().Add(-metadataFor)
	return all, errors.Join(
		packagefile.RemoveUnneeded(r.state("rpm/metadata"), old, packagefile.MaxUnneeded, nil),
		r.offers().Remember(request.Sources, remembered),
	)
}

// sameURI takes a slash at the end for nothing, as dnf does.
func sameURI(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}
