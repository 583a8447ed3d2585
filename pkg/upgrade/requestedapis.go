package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// maxRequestedAPIs bounds what a Machine reports of them.
const maxRequestedAPIs = 32

// fieldDeprecatedAPIs is the field of a Problem that leaves open which APIs are asked for.
const fieldDeprecatedAPIs = "controlPlane.deprecatedAPIs"

// RequestedAPIs are the APIs that go away and that somebody asked this host's API server
// for, as the Machine reports them: not those of which nobody has said when they go. known
// is false where it could not be asked.
func (f *Facts) RequestedAPIs() (out []v1alpha1.RequestedAPI, known bool) {
	if slices.ContainsFunc(f.Problems, func(p Problem) bool { return p.Field == fieldDeprecatedAPIs }) {
		return nil, false
	}
	if f.Control == nil {
		return nil, true
	}
	for _, api := range f.Control.DeprecatedAPIs {
		if removed, ok := removedIn(api.RemovedRelease); ok {
			out = append(out, v1alpha1.RequestedAPI{Name: apiName(api), RemovedIn: removed.Minor()})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.RequestedAPI) int {
		return strings.Compare(a.RemovedIn+" "+a.Name, b.RemovedIn+" "+b.Name)
	})
	out = slices.Compact(out)
	return out[:min(len(out), maxRequestedAPIs)], true
}

// removedIn is the first release without an API.
func removedIn(release string) (Version, bool) {
	return ParseKubernetes("v" + strings.TrimPrefix(release, "v") + ".0")
}

// clientsLeft holds the first hop to a minor while clients ask any API server of the cluster
// for what that minor no longer has: they come to all of them, through whatever is in front.
func (v *View) clientsLeft(host HostState, hop Version) *Blocked {
	if host.RemovedAPIsPass || hop.MinorsAhead(v.api[host.Name]) <= 0 {
		return nil
	}
	for _, version := range v.api {
		if version.MinorsAhead(hop) >= 0 {
			return nil // what it takes away is away
		}
	}
	var asked []string
	own := false
	for _, h := range v.control {
		var gone []string
		for _, api := range h.RequestedAPIs {
			if removed, ok := removedIn(api.RemovedIn); ok && hop.MinorsAhead(removed) >= 0 {
				gone = append(gone, fmt.Sprintf("%s (gone from %s on)", api.Name, api.RemovedIn))
			}
		}
		if len(gone) > 0 {
			asked, own = append(asked, h.Name+" for "+strings.Join(gone, ", ")), own || h.Name == host.Name
		}
	}
	if len(asked) == 0 {
		return nil
	}
	blocked := wait(FindingRemovedAPI, "since the API servers were started, clients have asked for APIs that %s does not have: %s; they may come to any API server, so none goes there first; find who asks in the audit log and move them to the newer version; when that is done, name %s in spec.kubeadm.ignorePreflightErrors of every control-plane Machine", hop, strings.Join(asked, "; "), FindingRemovedAPI)
	blocked.Terminal = own
	return blocked
}
