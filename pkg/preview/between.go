package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// FindingReleaseChosen: a minor that is only passed through is planned with the newest release that facts offer.
const FindingReleaseChosen = "ReleaseChosen"

// between is what facts say of the minors that control planes only pass through.
type between struct {
	// releases are the newest that every control-plane host with known indexes can get.
	releases map[string]string
	// apart are the minors that hosts offer, but no release of them in common.
	apart map[string][]string
	// asked are the hosts whose sources are known, and unasked the other control planes
	// that pass through a minor: the cluster waits for what their agents say.
	asked, unasked map[string][]string
}

func (f *fleet) readBetween(hosts []Host) {
	f.between = between{releases: map[string]string{}, apart: map[string][]string{}, asked: map[string][]string{}, unasked: map[string][]string{}}
	offered, names := map[string][][]upgrade.Version{}, f.between.asked
	for _, in := range hosts {
		h := f.hosts[in.Machine.Name]
		for _, minor := range f.passed {
			if assigned := upgrade.AssignedRelease(&h.Machine, minor); assigned != "" && in.Observed {
				f.between.releases[minor] = assigned
			}
			if releases, known := h.releases(minor); known && h.state().IsControlPlane() {
				offered[minor], names[minor] = append(offered[minor], releases), append(names[minor], h.Machine.Name)
			} else if h.state().IsControlPlane() && slices.Contains(h.passes(), minor) {
				f.between.unasked[minor] = append(f.between.unasked[minor], h.Machine.Name)
			}
		}
	}
	for minor, lists := range offered {
		if f.between.releases[minor] != "" {
			continue // on its way there
		}
		if release := upgrade.CommonRelease(lists); release != "" {
			f.between.releases[minor] = release
		} else {
			f.between.apart[minor] = names[minor]
		}
	}
}

// releases are what the host can get of a minor, as its facts say, or its agent where there are none.
func (h *host) releases(minor string) (releases []upgrade.Version, known bool) {
	if h.Facts != nil {
		return h.facts.Releases(h.Machine.Spec, minor)
	}
	releases, _ = upgrade.ReportedReleases(&h.Machine, minor)
	return releases, len(releases) > 0
}

// passes are the minors that a host's control plane passes through on its way, in order.
func (h *host) passes() []string {
	v, wish := h.from, h.Machine.Spec.Versions
	if v == nil || v.ControlPlane == nil || wish == nil {
		return nil
	}
	return upgrade.MinorsBetween(v.ControlPlane.APIServer, string(wish.ControlPlane))
}

// readPassed collects the minors that some host passes through.
func (f *fleet) readPassed(hosts []Host) {
	for _, in := range hosts {
		f.passed = append(f.passed, f.hosts[in.Machine.Name].passes()...)
	}
	slices.Sort(f.passed)
	f.passed = slices.Compact(f.passed)
}

// chosen says that a hop goes to a release that facts offered, and what the cluster needs for it.
func (f *fleet) chosen(h *host, hop upgrade.Hop) {
	to, wish := hop.Target.ControlPlane, h.Machine.Spec.Versions
	v, ok := upgrade.ParseKubernetes(string(to))
	if !ok || wish == nil || to == wish.ControlPlane || f.between.releases[v.Minor()] != string(to) {
		return
	}
	h.note(f.between.finding(v))
}

// finding says of whose package sources a release is the newest, and whose are not known:
// without them the cluster itself says HopVersionUnknown.
func (b *between) finding(v upgrade.Version) upgrade.Finding {
	minor := v.Minor()
	unasked := b.unasked[minor]
	if len(unasked) == 0 || len(b.asked[minor]) == 0 {
		return upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: FindingReleaseChosen, Message: fmt.Sprintf(
			"%s is passed through with %s, the newest release that the package sources of the control-plane hosts offer", minor, v)}
	}
	return upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingReleaseChosen, Message: fmt.Sprintf(
		"%s is passed through with %s, the newest release that the package sources of %s offer; those of %s were not asked, and no control plane is assigned a release before their agents have said what they can get: give the facts that refit-agent facts --minor %s prints there",
		minor, v, strings.Join(b.asked[minor], ", "), strings.Join(unasked, ", "), minor)}
}

// unknownBetween adds to a refusal for want of a release which facts would give it.
func (f *fleet) unknownBetween(h *host, blocked *upgrade.Blocked) *upgrade.Blocked {
	if blocked == nil || blocked.Reason != upgrade.ReasonHopVersionUnknown {
		return blocked
	}
	out := *blocked
	for _, minor := range h.passes() {
		if names := f.between.apart[minor]; len(names) > 0 {
			out.Message += fmt.Sprintf("; the package sources of %s offer no release of %s that all of them can get: bring their repositories to the same state", strings.Join(names, ", "), minor)
			return &out
		}
	}
	out.Message += "; to plan the whole way at once, give the facts that refit-agent facts --minor " + strings.Join(h.passes(), " --minor ") + " prints on the control-plane hosts"
	return &out
}
