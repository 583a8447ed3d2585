package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestAControlPlaneThatNobodyManagesIsToBeAdopted(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	cp := at("cp1", "v1.37.2", "v1.37.2", v1alpha1.Versions{})
	for name, tc := range map[string]struct {
		label string
		plane bool
	}{
		"as kubeadm labels it":       {"node-role.kubernetes.io/control-plane", true},
		"as kubeadm labelled it":     {"node-role.kubernetes.io/master", true},
		"a worker":                   {"node-role.kubernetes.io/worker", false},
		"a label that looks like it": {"node-role.kubernetes.io/masters", false},
	} {
		t.Run(name, func(t *testing.T) {
			other := Unmanaged("x", NodeState{Labels: map[string]string{tc.label: ""}, Kubelet: "v1.36.3"})
			assert.False(t, other.Managed)
			assert.Equal(t, "v1.36.3", other.Versions.Kubelet)
			target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{cp, w, other}}, w, w.Wish)
			if !tc.plane {
				require.Nil(t, blocked)
				assert.Equal(t, w.Wish, target.Versions)
				return
			}
			refused := requireBlocked(t, blocked, ReasonVersionUnknown)
			assert.Contains(t, refused.Message, "Node x is a control plane without a Machine")
			assert.Contains(t, refused.Message, "kubectl refit adopt --apply")
			assert.NotContains(t, refused.Message, "see that its agent runs")
			adopted := at("x", "v1.36.3", "v1.37.2", v1alpha1.Versions{})
			_, _, _, blocked = NextTarget(Fleet{Hosts: []HostState{cp, w, adopted}}, w, w.Wish)
			require.Nil(t, blocked, "what the message says is the way out")
		})
	}
}

// What the refusal says is left: everything but the kubelet.
func TestWorkersOfAHostedControlPlaneGoOnWithoutTheirKubelet(t *testing.T) {
	wish := wishKubelet("v1.37.2")
	wish.ContainerRuntime = containerdAt("2.1.4")
	w := at("w1", "v1.36.3", "", wish)
	_, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{w}}, w, w.Wish)
	assert.Contains(t, requireBlocked(t, blocked, ReasonSkewUnknown).Message, "remove spec.versions.kubelet, and the rest goes on")
	w.Wish.Kubelet = ""
	target, _, _, blocked := NextTarget(Fleet{Hosts: []HostState{w}}, w, w.Wish)
	require.Nil(t, blocked)
	assert.Equal(t, v1alpha1.Versions{ContainerRuntime: wish.ContainerRuntime}, target.Versions)
}
