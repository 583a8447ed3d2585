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
	assert.Equal(t, "v1.35.10", CommonRelease([][]Version{releases}), "patches are numbers")
	assert.Equal(t, "v1.35.9", CommonRelease([][]Version{releases, releases[:1]}))
	assert.Empty(t, CommonRelease([][]Version{releases, nil}))
	assert.Empty(t, CommonRelease(nil))
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
