package upgrade

import (
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Releases are the releases of a minor that the repositories of a host offer, kubeadm and
// kubelet alike, oldest first; known is false where the indexes in the facts do not say.
func (f *Facts) Releases(spec v1alpha1.MachineSpec, minor string) (releases []Version, known bool) {
	first := v1alpha1.KubernetesVersion(minor + ".0") // names the minor: it need not exist
	request, _, err := Sources(*f, v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: first, Kubelet: first}}, spec)
	if err != nil {
		return nil, false
	}
	candidates, unknown := f.Offered(request)
	if len(request.Sources) == 0 || len(unknown) > 0 {
		return nil, false
	}
	return OfferedReleases(candidates, minor), true
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

// PassedRelease is the release with which machines pass through a minor: what one of
// them was assigned already, so that what a mirror publishes meanwhile changes nothing;
// else the newest that every control-plane machine that passes through it can get. It is
// "" where that is not known, and why says why.
func PassedRelease(machines []v1alpha1.Machine, minor string) (release, why string) {
	var lists [][]Version
	var names []string
	for i := range machines {
		m := &machines[i]
		if release := AssignedRelease(m, minor); release != "" {
			return release, ""
		}
		if !slices.Contains(passesThrough(m), minor) {
			continue
		}
		list, message := ReportedReleases(m, minor)
		if message != "" {
			why = m.Name + " says: " + message
		}
		lists, names = append(lists, list), append(names, m.Name)
	}
	if release = CommonRelease(lists); release != "" || why != "" {
		return release, why
	}
	return "", "the package sources of " + strings.Join(names, ", ") + " offer no release of it that all of them can get"
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
			if release, why := PassedRelease(machines, minor); release != "" {
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

// CommonRelease is the newest release that all lists have; "" when there is none.
func CommonRelease(lists [][]Version) string {
	if len(lists) == 0 {
		return ""
	}
	for _, v := range slices.Backward(lists[0]) {
		if !slices.ContainsFunc(lists[1:], func(list []Version) bool { return !containsVersion(list, v) }) {
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
