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
	kubelets := releasesOf(candidates, packageKubelet, minor)
	for _, v := range releasesOf(candidates, packageKubeadm, minor) {
		if containsVersion(kubelets, v) {
			releases = append(releases, v)
		}
	}
	return releases, true
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
