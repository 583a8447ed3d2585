package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestAKubeletOutsideOfItsSkewIsTold(t *testing.T) {
	host := func(name, kubelet, api string) HostState {
		h := HostState{Name: name, Managed: true, Roles: []v1alpha1.Role{v1alpha1.RoleWorker}, Versions: v1alpha1.ObservedVersions{Kubelet: kubelet}}
		if api != "" {
			h.Roles, h.APIServer = []v1alpha1.Role{v1alpha1.RoleControlPlane}, APIServerOnHost
			h.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: api}
		}
		return h
	}
	for name, tc := range map[string]struct {
		kubelet, api string
		says         []string
	}{
		"of the same minor":        {"v1.37.9", "v1.37.2", nil},
		"three minors behind":      {"v1.34.1", "v1.37.2", nil},
		"newer by a minor":         {"v1.37.2", "v1.36.4", []string{"kubelet v1.37.2 on w", "API server v1.36.4", "spec.versions.controlPlane"}},
		"four minors behind":       {"v1.33.1", "v1.37.2", []string{"kubelet v1.33.1 on w", "API server v1.37.2", "spec.versions.kubelet"}},
		"a kubelet that is silent": {"Unknown", "v1.37.2", nil},
		"API servers are unknown":  {"v1.37.2", "Unknown", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := host("w", tc.kubelet, "")
			found := NewView(Fleet{Hosts: []HostState{host("cp", tc.api, tc.api), w}}).SkewFindings(w)
			if tc.says == nil {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, FindingSkewViolated, found[0].Reason)
			for _, part := range tc.says {
				assert.Contains(t, found[0].Message, part)
			}
		})
	}
	t.Run("what may not go back points to the control plane", func(t *testing.T) {
		w := host("w", "v1.37.2", "")
		w.Wish.Kubelet = "v1.36.4"
		fleet := Fleet{Hosts: []HostState{host("cp", "v1.36.4", "v1.36.4"), w}}
		_, _, _, blocked := NextTarget(fleet, w, w.Wish)
		require.NotNil(t, blocked)
		assert.Equal(t, ReasonDowngradeRefused, blocked.Reason)
		assert.Contains(t, blocked.Message, "bring the control plane to v1.37.2")
	})
}
