package upgrade

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// at is an observed host; a control plane has its components at the version of its API server.
func at(name, kubelet, api string, wish v1alpha1.Versions) HostState {
	h := HostState{Name: name, Managed: true, Roles: []v1alpha1.Role{v1alpha1.RoleWorker}, Wish: wish, Versions: v1alpha1.ObservedVersions{Kubelet: kubelet}}
	if api != "" {
		h.Roles = []v1alpha1.Role{v1alpha1.RoleControlPlane}
		h.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: api, ControllerManager: api, Scheduler: api}
	}
	return h
}

func wishKubelet(v string) v1alpha1.Versions {
	return v1alpha1.Versions{Kubelet: v1alpha1.KubernetesVersion(v)}
}

func wishBoth(v string) v1alpha1.Versions {
	w := wishKubelet(v)
	w.ControlPlane = w.Kubelet
	return w
}

func TestASingleControlPlaneTakesItsKubeletAlong(t *testing.T) {
	wish := wishBoth("v1.37.2")
	wish.ContainerRuntime = containerdAt("2.4.2")
	cp := at("cp1", "v1.36.3", "v1.36.3", wish)
	fleet := Fleet{Hosts: []HostState{cp, at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))}}
	target, role, skew, blocked := NextTarget(fleet, cp, wish)
	require.Nil(t, blocked)
	assert.Equal(t, wish, target.Versions)
	assert.Equal(t, v1alpha1.KubeadmFirst, role)
	assert.Equal(t, v1alpha1.Skew{MinAPIServer: "v1.37.2", MaxAPIServer: "v1.37.2"}, skew)
}

func TestAWorkerWaitsForItsControlPlane(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.36.3", "v1.36.3", wishBoth("v1.37.2")), w}}
	_, _, _, blocked := NextTarget(fleet, w, w.Wish)
	requireBlocked(t, blocked, ReasonWaitingForControlPlane)
	assert.False(t, blocked.Terminal)
}

func TestAWorkerFollowsAnUpgradedControlPlane(t *testing.T) {
	w := at("w1", "v1.36.3", "", wishKubelet("v1.37.2"))
	fleet := Fleet{Hosts: []HostState{at("cp1", "v1.37.2", "v1.37.2", wishBoth("v1.37.2")), w}}
	target, role, _, blocked := NextTarget(fleet, w, w.Wish)
	require.Nil(t, blocked)
	assert.Equal(t, w.Wish, target.Versions)
	assert.Equal(t, v1alpha1.KubeadmOther, role)
}
