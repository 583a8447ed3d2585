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
	// releases by minor, of those that are known.
	releases map[string]string
	// choices by minor, of those that no machine is on its way to. What the hosts can get whose
	// sources are not known is left out: the cluster waits for what their agents say.
	choices map[string]upgrade.Choice
}

func (f *fleet) readBetween(hosts []Host) {
	f.between = between{releases: map[string]string{}, choices: map[string]upgrade.Choice{}}
	for _, minor := range f.passed {
		var offers []upgrade.Offer
		for _, in := range hosts {
			if offer, ok := f.hosts[in.Machine.Name].offer(minor, in.Observed); ok {
				offers = append(offers, offer)
			}
		}
		choice := upgrade.ChooseRelease(offers)
		f.between.choices[minor] = choice
		if choice.Release != "" {
			f.between.releases[minor] = choice.Release
		}
	}
}

// offer is what the host can get of a minor; false where it does not pass through it.
func (h *host) offer(minor string, observed bool) (upgrade.Offer, bool) {
	o := upgrade.Offer{Machine: h.Machine.Name}
	if observed {
		o.Assigned = upgrade.AssignedRelease(&h.Machine, minor)
	}
	if o.Assigned == "" && (!h.state().IsControlPlane() || !slices.Contains(h.passes(), minor)) {
		return o, false
	}
	o.Releases, o.Unknown = h.releases(minor)
	return o, true
}

// releases are what the host can get of a minor, as its facts say, or its agent where there are none.
func (h *host) releases(minor string) (releases []upgrade.Version, unknown string) {
	if h.Facts == nil {
		return upgrade.ReportedReleases(&h.Machine, minor)
	}
	releases, known := h.facts.Releases(h.Machine.Spec, minor)
	if !known {
		unknown = "its facts do not have the indexes of " + minor
	}
	return releases, unknown
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
	choice := b.choices[minor]
	if len(choice.Unasked) == 0 {
		return upgrade.Finding{Severity: upgrade.SeverityInfo, Reason: FindingReleaseChosen, Message: fmt.Sprintf(
			"%s is passed through with %s, the newest release that the package sources of the control-plane hosts offer", minor, v)}
	}
	return upgrade.Finding{Severity: upgrade.SeverityWarning, Reason: FindingReleaseChosen, Message: fmt.Sprintf(
		"%s is passed through with %s, the newest release that the package sources of %s offer; those of %s were not asked, and no control plane is assigned a release before their agents have said what they can get: give the facts that refit-agent facts --minor %s prints there",
		minor, v, strings.Join(choice.Asked, ", "), strings.Join(choice.Unasked, ", "), minor)}
}

// unknownBetween adds to a refusal for want of a release which facts would give it.
func (f *fleet) unknownBetween(h *host, blocked *upgrade.Blocked) *upgrade.Blocked {
	if blocked == nil || blocked.Reason != upgrade.ReasonHopVersionUnknown {
		return blocked
	}
	out := *blocked
	for _, minor := range h.passes() {
		if choice := f.between.choices[minor]; choice.Release == "" && len(choice.Asked) > 0 {
			out.Message += fmt.Sprintf("; the package sources of %s offer no release of %s that all of them can get: bring their repositories to the same state", strings.Join(choice.Asked, ", "), minor)
			return &out
		}
	}
	out.Message += "; to plan the whole way at once, give the facts that refit-agent facts --minor " + strings.Join(h.passes(), " --minor ") + " prints on the control-plane hosts"
	return &out
}
