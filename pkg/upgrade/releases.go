package upgrade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Releases are the releases of a minor that the repositories of a host offer, kubeadm and
// kubelet alike, oldest first; known is false where the indexes in the facts do not say.
func (f *Facts) Releases(spec v1alpha1.MachineSpec, minor string) (releases []Version, known bool) {
	request, err := f.ReleaseSources(spec, minor)
	if err != nil {
		return nil, false
	}
	candidates, unknown := f.Offered(request)
	if len(unknown) > 0 {
		return nil, false
	}
	return OfferedReleases(candidates, minor), true
}

// ReleaseSources is the request for the releases of a minor; an error says why this host has no source of them.
func (f *Facts) ReleaseSources(spec v1alpha1.MachineSpec, minor string) (CandidateRequest, error) {
	first := v1alpha1.KubernetesVersion(minor + ".0") // names the minor: it need not exist
	request, _, err := Sources(*f, v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: first, Kubelet: first}}, spec)
	if err != nil {
		return request, fmt.Errorf("choosing package sources of %s: %w", minor, err)
	}
	if len(request.Sources) == 0 {
		return request, fmt.Errorf("no package source of this host has %s", minor)
	}
	return request, nil
}

// OfferedReleases are the releases of a minor among candidates, kubeadm and kubelet alike, oldest first.
func OfferedReleases(candidates []Candidate, minor string) []Version {
	var releases []Version
	kubelets := releasesOf(candidates, packageKubelet, minor)
	for _, v := range releasesOf(candidates, packageKubeadm, minor) {
		if containsVersion(kubelets, v) {
			releases = append(releases, v)
		}
	}
	return releases
}

// Offer is what a control plane that passes through a minor can get of it.
type Offer struct {
	// Machine whose offer it is.
	Machine string
	// Assigned is the release that it is on its way to already; "" for none.
	Assigned string
	// Releases that it can get, oldest first.
	Releases []Version
	// Unknown says why nobody knows what it can get; "" where it is known.
	Unknown string
}

// Choice is the release with which control planes pass through a minor.
type Choice struct {
	// Release is what one of them was assigned already, so that what a mirror publishes
	// meanwhile changes nothing; else the newest that all that were asked can get; else "".
	Release string
	// Asked are the machines whose offers are known, and Unasked the others.
	Asked, Unasked []string
	// Unknown is why an offer is not known, by one of the Unasked.
	Unknown string
	// Assigned says that a machine is on its way there.
	Assigned bool
}

// ChooseRelease chooses among the releases of a minor for all that pass through it.
func ChooseRelease(offers []Offer) Choice {
	var c Choice
	var lists [][]Version
	for _, o := range offers {
		switch {
		case o.Assigned != "":
			return Choice{Release: o.Assigned, Assigned: true}
		case o.Unknown != "":
			c.Unasked, c.Unknown = append(c.Unasked, o.Machine), o.Machine+" says: "+o.Unknown
		default:
			c.Asked, lists = append(c.Asked, o.Machine), append(lists, o.Releases)
		}
	}
	c.Release = commonRelease(lists)
	return c
}

// passedRelease is the release with which machines pass through a minor. It is "" where
// that is not known, and why says why: a machine that was not asked could not get it.
func passedRelease(machines []v1alpha1.Machine, minor string) (release, why string) {
	var offers []Offer
	for i := range machines {
		m := &machines[i]
		assigned := AssignedRelease(m, minor)
		if assigned == "" && !slices.Contains(passesThrough(m), minor) {
			continue
		}
		list, unknown := ReportedReleases(m, minor)
		offers = append(offers, Offer{Machine: m.Name, Assigned: assigned, Releases: list, Unknown: unknown})
	}
	switch c := ChooseRelease(offers); {
	case c.Unknown != "":
		return "", c.Unknown
	case c.Release != "":
		return c.Release, ""
	default:
		return "", c.Apart()
	}
}

// Apart says that the machines that were asked have no release in common.
func (c Choice) Apart() string {
	return "the package sources of " + strings.Join(c.Asked, ", ") + " offer no release of it that all of them can get"
}

// PassedReleases are the releases of all minors that control planes only pass through,
// by minor, and for those that are not known, why.
func PassedReleases(machines []v1alpha1.Machine) (releases, unknown map[string]string) {
	releases, unknown = map[string]string{}, map[string]string{}
	for i := range machines {
		for _, minor := range passesThrough(&machines[i]) {
			if releases[minor] != "" || unknown[minor] != "" {
				continue
			}
			if release, why := passedRelease(machines, minor); release != "" {
				releases[minor] = release
			} else {
				unknown[minor] = why
			}
		}
	}
	return releases, unknown
}

// passesThrough are the minors that the control plane of a machine passes through, as far as is known.
func passesThrough(m *v1alpha1.Machine) []string {
	v, wish := m.Status.Versions, m.Spec.Versions
	if v == nil || v.ControlPlane == nil || wish == nil {
		return nil
	}
	return MinorsBetween(v.ControlPlane.APIServer, string(wish.ControlPlane))
}

// AssignedRelease is the release of a minor to which the control plane of a machine is on its way; "" for none.
func AssignedRelease(m *v1alpha1.Machine, minor string) string {
	if a := m.Status.Assignment; a != nil {
		if v, ok := ParseKubernetes(string(a.Target.ControlPlane)); ok && v.Minor() == minor {
			return v.String()
		}
	}
	return ""
}

// ReportedReleases are what a machine's agent says that it can get of a minor, oldest first, or why it does not know.
func ReportedReleases(m *v1alpha1.Machine, minor string) (list []Version, message string) {
	for _, p := range m.Status.PassedMinors {
		if p.Minor != minor {
			continue
		}
		for _, text := range slices.Backward(p.Releases) {
			if v, ok := ParseKubernetes(string(text)); ok && v.Minor() == minor {
				list = append(list, v)
			}
		}
		return list, p.Message
	}
	return nil, "its agent has not looked for releases of " + minor + " yet"
}

// releasesOf are the releases of a minor that packages of one name carry; candidates for a release are none.
func releasesOf(candidates []Candidate, name, minor string) []Version {
	var out []Version
	for _, c := range candidates {
		v := packageUpstream(c.Version)
		if c.Name == name && v.Minor() == minor && !strings.Contains(v.Upstream(), "-") && !containsVersion(out, v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b Version) int { return a.sem.Compare(b.sem) })
	return out
}

func containsVersion(all []Version, v Version) bool { return slices.ContainsFunc(all, v.Equal) }

// commonRelease is the newest release that all lists have; "" when there is none.
func commonRelease(lists [][]Version) string {
	if len(lists) == 0 {
		return ""
	}
	for _, v := range slices.Backward(lists[0]) {
		if knownBad(v) == nil && !slices.ContainsFunc(lists[1:], func(list []Version) bool { return !containsVersion(list, v) }) {
			return v.String()
		}
	}
	return ""
}

// maxBetween bounds how many minors are looked for: a wish may name any.
const maxBetween = 20

// MinorsBetween are the minors that a control plane only passes through on its way, in order.
func MinorsBetween(now, wish string) []string {
	from, _ := ParseKubernetes(now)
	to, _ := ParseKubernetes(wish)
	var out []string
	for to.MinorsAhead(from) > 1 && len(out) < maxBetween {
		from, _ = ParseKubernetes(from.nextMinor() + ".0")
		out = append(out, from.Minor())
	}
	return out
}
