package planning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	// mostReleases of a minor are reported: the newest that several hosts have in common is among them.
	mostReleases   = 8
	longestMessage = 512
)

// Passed looks up which releases of the minors that a control plane passes through this
// host can get. A minor whose repository cannot be read says so.
func Passed(ctx context.Context, lookup Candidates, facts upgrade.Facts, spec v1alpha1.MachineSpec, minors []string) []v1alpha1.PassedMinor {
	out := make([]v1alpha1.PassedMinor, 0, len(minors))
	for _, minor := range minors {
		p := v1alpha1.PassedMinor{Minor: minor}
		releases, err := releases(ctx, lookup, facts, spec, minor)
		if err != nil {
			p.Message = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), longestMessage)], "")
		}
		for _, v := range slices.Backward(releases) {
			if len(p.Releases) < mostReleases {
				p.Releases = append(p.Releases, v1alpha1.KubernetesVersion(v.String()))
			}
		}
		out = append(out, p)
	}
	return out
}

func releases(ctx context.Context, lookup Candidates, facts upgrade.Facts, spec v1alpha1.MachineSpec, minor string) ([]upgrade.Version, error) {
	request, err := facts.ReleaseSources(spec, minor)
	if err != nil {
		return nil, err
	}
	if likely, fewer := request.Likely(); fewer {
		request = likely // the host's own source of Kubernetes is known, and has it or has it not
	}
	found, err := lookup.Candidates(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("reading package sources (%s): %w", sourceURIs(request), err)
	}
	all := upgrade.OfferedReleases(found, minor)
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no release of %s", sourceURIs(request), minor)
	}
	return all, nil
}
