package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAGateThatTheTargetHasLockedMayOnlyBeSetToThat(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to, gate string
		value          any
		refused        bool
	}{
		"off, and locked on":             {"v1.34.4", "v1.35.4", "DynamicResourceAllocation", false, true},
		"on, and locked on":              {"v1.34.4", "v1.35.4", "DynamicResourceAllocation", true, false},
		"on, and locked off":             {"v1.35.4", "v1.36.3", "GitRepoVolumeDriver", true, true},
		"off, and locked off":            {"v1.35.4", "v1.36.3", "GitRepoVolumeDriver", false, false},
		"not locked yet":                 {"v1.33.4", "v1.34.4", "DynamicResourceAllocation", false, false},
		"locked over several minors":     {"v1.34.4", "v1.37.2", "GitRepoVolumeDriver", true, true},
		"a gate that nobody knows of":    {"v1.34.4", "v1.35.4", "CorporateGate", false, false},
		"what is neither true nor false": {"v1.34.4", "v1.35.4", "DynamicResourceAllocation", "maybe", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := kubeletHop(tc.from, tc.to)
			in.Facts.Kubelet.Configuration = map[string]any{"featureGates": map[string]any{tc.gate: tc.value}}
			_, err := NewPlan(in)
			if !tc.refused {
				require.NoError(t, err)
				return
			}
			assert.Contains(t, requireBlocked(t, err, FindingGateLocked).Message, tc.gate)
		})
	}
	flags := kubeletHop("v1.34.4", "v1.35.4")
	flags.Facts.Kubelet.FlagSources = map[string]string{"/etc/default/kubelet": "X=--feature-gates=NodeSwap=true,DynamicResourceAllocation=false"}
	_, err := NewPlan(flags)
	assert.Contains(t, requireBlocked(t, err, FindingGateLocked).Message, "/etc/default/kubelet")
	manifest := controlPlaneHop("v1.34.4", "v1.35.4")
	manifest.Facts.Control.FeatureGates = map[string][]string{"kube-scheduler": {"DynamicResourceAllocation=false"}}
	_, err = NewPlan(manifest)
	assert.Contains(t, requireBlocked(t, err, FindingGateLocked).Message, "kube-scheduler")
}

func TestNoGateIsLockedBothWaysOrLockedWhenItIsGone(t *testing.T) {
	removed := map[string]int{}
	for minor, gates := range featureGatesRemoved {
		for _, g := range gates {
			removed[g] = minor
		}
	}
	seen := map[string]bool{}
	for _, table := range []map[int][]string{featureGatesLockedOn, featureGatesLockedOff} {
		for minor, gates := range table {
			for _, g := range gates {
				assert.False(t, seen[g], "%s is told once", g)
				seen[g] = true
				if gone, is := removed[g]; is {
					assert.Less(t, minor, gone, "%s is locked before it goes", g)
				}
			}
		}
	}
	assert.Greater(t, len(seen), 100)
}
