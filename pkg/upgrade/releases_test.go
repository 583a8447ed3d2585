package upgrade

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestMinorsInBetweenAreThoseThatAreOnlyPassedThrough(t *testing.T) {
	for name, tc := range map[string]struct {
		now, wish string
		want      []string
	}{
		"three minors":     {"v1.34.4", "v1.37.2", []string{"v1.35", "v1.36"}},
		"one minor":        {"v1.36.4", "v1.37.2", nil},
		"the same":         {"v1.37.2", "v1.37.2", nil},
		"back":             {"v1.37.2", "v1.34.4", nil},
		"nothing is known": {"Unknown", "v1.37.2", nil},
		"no wish":          {"v1.36.4", "", nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, MinorsBetween(tc.now, tc.wish)) })
	}
	assert.Len(t, MinorsBetween("v1.34.4", "v1.999999999.0"), maxBetween, "whatever is wished for")
}

func TestReleasesAreThoseOfBothPackagesAndNoCandidatesOfThem(t *testing.T) {
	f := workerFacts("v1.34.4", "1.7.28")
	_, known := f.Releases(controlPlane(), "v1.35")
	assert.False(t, known, "facts without indexes say nothing")

	request, _, err := Sources(f, v1alpha1.Target{Versions: wishBoth("v1.35.0")}, controlPlane())
	require.NoError(t, err)
	uri := fmt.Sprintf(k8sURI, "v1.35")
	offered := candidatesOf([]string{"v1.35.10", "v1.35.9", "v1.36.2"}, nil)
	for i := range offered {
		offered[i].Source = uri
	}
	offered = append(offered, candidate("kubeadm", "1.35.11-1.1", uri), candidate("kubelet", "1.35.12~rc.1-1.1", uri), candidate("kubeadm", "1.35.12~rc.1-1.1", uri))
	f.Packages.Indexes = IndexesOf(request, offered)
	releases, known := f.Releases(controlPlane(), "v1.35")
	require.True(t, known)
	require.Len(t, releases, 2)
	assert.Equal(t, "v1.35.10", commonRelease([][]Version{releases}), "patches are numbers")
	assert.Equal(t, "v1.35.9", commonRelease([][]Version{releases, releases[:1]}))
	assert.Empty(t, commonRelease([][]Version{releases, nil}))
	assert.Empty(t, commonRelease(nil))
}

// Whoever does what the refusal says, minor by minor, arrives.
func TestTheRefusalForWantOfAReleaseCanBeFollowed(t *testing.T) {
	for controlPlanes := 1; controlPlanes <= 3; controlPlanes++ {
		hosts := []HostState{at("w1", "v1.34.4", "", wishKubelet("v1.37.2"))}
		for i := range controlPlanes {
			hosts = append(hosts, at(fmt.Sprintf("cp%d", i), "v1.34.4", "v1.34.4", wishBoth("v1.37.2")))
		}
		_, blocked := Hops(Fleet{Hosts: hosts})
		requireBlocked(t, blocked["cp0"], ReasonHopVersionUnknown)
		for _, release := range []string{"v1.35.10", "v1.36.3", "v1.37.2"} {
			for i := range hosts[1:] {
				hosts[1+i].Wish = wishBoth(release)
			}
			hops, _ := Hops(Fleet{Hosts: hosts})
			for _, hop := range hops {
				for i := range hosts {
					if hosts[i].Name == hop.Machine {
						hosts[i] = hosts[i].After(hop.Target)
					}
				}
			}
			for _, h := range hosts[1:] {
				assert.Equal(t, release, h.Versions.ControlPlane.APIServer)
				assert.Equal(t, release, h.Versions.Kubelet)
			}
		}
		assert.Equal(t, "v1.37.2", hosts[0].Versions.Kubelet)
	}
}

func TestThePassedReleaseIsOneForAllControlPlanesAndStaysIt(t *testing.T) {
	machine := func(name, api string, wish v1alpha1.KubernetesVersion, passed ...v1alpha1.PassedMinor) v1alpha1.Machine {
		m := v1alpha1.Machine{}
		m.Name = name
		m.Spec.Versions = &v1alpha1.Versions{ControlPlane: wish}
		m.Status.Versions = &v1alpha1.ObservedVersions{ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: api}}
		m.Status.PassedMinors = passed
		return m
	}
	offers := func(releases ...v1alpha1.KubernetesVersion) v1alpha1.PassedMinor {
		return v1alpha1.PassedMinor{Minor: "v1.35", Releases: releases}
	}
	onItsWay := machine("cp3", "v1.34.4", "v1.36.3", offers("v1.35.10"))
	onItsWay.Status.Assignment = &v1alpha1.Assignment{Target: v1alpha1.Target{Versions: v1alpha1.Versions{ControlPlane: "v1.35.8"}}}
	for name, tc := range map[string]struct {
		machines []v1alpha1.Machine
		want     string
		why      string
	}{
		"the newest of one": {[]v1alpha1.Machine{machine("cp1", "v1.34.4", "v1.36.3", offers("v1.35.10", "v1.35.9"))}, "v1.35.10", ""},
		"the newest of all": {[]v1alpha1.Machine{
			machine("cp1", "v1.34.4", "v1.36.3", offers("v1.35.10", "v1.35.9")), machine("cp2", "v1.34.4", "v1.36.3", offers("v1.35.9", "v1.35.8")),
		}, "v1.35.9", ""},
		"what one of them is on its way to": {[]v1alpha1.Machine{machine("cp1", "v1.34.4", "v1.36.3", offers("v1.35.10")), onItsWay}, "v1.35.8", ""},
		"one that has passed it is not asked": {[]v1alpha1.Machine{
			machine("cp1", "v1.34.4", "v1.36.3", offers("v1.35.10")), machine("cp2", "v1.35.10", "v1.36.3"), machine("w1", "", ""),
		}, "v1.35.10", ""},
		"one that has not looked yet is waited for": {[]v1alpha1.Machine{
			machine("cp1", "v1.34.4", "v1.36.3", offers("v1.35.10")), machine("cp2", "v1.34.4", "v1.36.3"),
		}, "", "cp2 says: its agent has not looked for releases of v1.35 yet"},
		"a repository that is away": {[]v1alpha1.Machine{
			machine("cp1", "v1.34.4", "v1.36.3", v1alpha1.PassedMinor{Minor: "v1.35", Message: "403 Forbidden"}),
		}, "", "cp1 says: 403 Forbidden"},
		"nothing in common": {[]v1alpha1.Machine{
			machine("cp1", "v1.34.4", "v1.36.3", offers("v1.35.10")), machine("cp2", "v1.34.4", "v1.36.3", offers("v1.35.8")),
		}, "", "the package sources of cp1, cp2 offer no release of it that all of them can get"},
		"a release of another minor is none": {[]v1alpha1.Machine{
			machine("cp1", "v1.34.4", "v1.36.3", offers("v1.36.1", "bogus")),
		}, "", "the package sources of cp1 offer no release"},
	} {
		t.Run(name, func(t *testing.T) {
			releases, unknown := PassedReleases(tc.machines)
			assert.Equal(t, tc.want, releases["v1.35"])
			if tc.why == "" {
				assert.Empty(t, unknown)
			} else {
				assert.Contains(t, unknown["v1.35"], tc.why)
			}
		})
	}
}

func TestTheRefusalForWantOfAReleaseSaysWhyItIsNotKnown(t *testing.T) {
	cp := at("cp", "v1.34.4", "v1.34.4", wishBoth("v1.36.3"))
	_, blocked := Hops(Fleet{Hosts: []HostState{cp}, HopUnknown: map[string]string{"v1.35": "cp says: 403 Forbidden"}})
	requireBlocked(t, blocked["cp"], ReasonHopVersionUnknown)
	assert.Contains(t, blocked["cp"].Message, "is not known (cp says: 403 Forbidden): mend that, or set spec.versions.controlPlane")
}
