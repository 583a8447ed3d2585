package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// HostState is one machine as the fleet sees it.
type HostState struct {
	Name  string
	Roles []v1alpha1.Role
	// Versions are observed. A Node that Refit does not manage has at least its kubelet;
	// a control plane that it does not manage has at least its API server.
	Versions v1alpha1.ObservedVersions
	// Managed says that the host has a Machine; others count for skew but are never moved.
	Managed bool
	// Wish is spec.versions of a managed host.
	Wish v1alpha1.Versions
	// OSPending says that spec.os asks for something that is not observed.
	OSPending bool
	// Sidelined hosts are paused, failed or out of service: they count for skew, and
	// are not waited for to go first.
	Sidelined bool
	// First says that the host holds an assignment as the first machine of a
	// control-plane hop; it keeps that until it has succeeded.
	First bool
	// Record lists the sets of versions that the host has run successfully before.
	Record []v1alpha1.Versions
}

// Fleet is every host of one cluster: managed or not, ready or not. All of them
// count for skew. A control plane that has no host of its own here (hosted
// elsewhere) is added as an unmanaged host with the versions of its live API servers.
type Fleet struct {
	Hosts []HostState
	// HopPatch gives the release to use for a minor that is only passed through: v1.36 → v1.36.3.
	HopPatch map[string]string
}

// StateOf is the state of the host of a Machine. First, Sidelined and Record are the caller's to add.
func StateOf(m *v1alpha1.Machine) HostState {
	h := HostState{Name: m.Name, Roles: m.Spec.Roles, Managed: true}
	if m.Status.Versions != nil {
		h.Versions = *m.Status.Versions
	}
	if m.Spec.Versions != nil {
		h.Wish = *m.Spec.Versions
	}
	h.OSPending = len(outdatedPackages(m.Spec, m.Status)) > 0 || rebootOutstanding(m.Spec, m.Status)
	return h
}

// IsControlPlane says whether the host has an API server of the cluster.
func (h HostState) IsControlPlane() bool { return slices.Contains(h.Roles, v1alpha1.RoleControlPlane) }

// hasKubelet is false only for hosts that carry etcd and nothing else.
func (h HostState) hasKubelet() bool {
	return len(h.Roles) == 0 || slices.ContainsFunc(h.Roles, func(r v1alpha1.Role) bool { return r != v1alpha1.RoleEtcd })
}

func (h HostState) control() ControlFacts {
	c := h.Versions.ControlPlane
	if c == nil {
		return ControlFacts{}
	}
	return ControlFacts{APIServer: c.APIServer, ControllerManager: c.ControllerManager, Scheduler: c.Scheduler}
}

// kubelet is the observed kubelet.
func (h HostState) kubelet() (Version, *Blocked) {
	v, ok := ParseKubernetes(h.Versions.Kubelet)
	if !ok {
		return v, wait(ReasonVersionUnknown, "the kubelet of %s reports version %q, which is no version: nothing is planned on a guess; see that its agent and its kubelet run", h.Name, h.Versions.Kubelet)
	}
	return v, nil
}

// apiServer is the version of the API server on the host.
func (h HostState) apiServer() (Version, *Blocked) {
	v, ok := ParseKubernetes(h.control().APIServer)
	if !ok {
		return v, wait(ReasonVersionUnknown, "the API server of %s reports version %q, which is no version: nothing is planned on a guess; see that its agent runs and its API server answers", h.Name, h.control().APIServer)
	}
	return v, nil
}

// versionRange is the oldest and the newest of some versions.
type versionRange struct{ min, max Version }

func (r *versionRange) add(v Version) {
	if !r.min.Known() || v.LessThan(r.min) {
		r.min = v
	}
	if !r.max.Known() || r.max.LessThan(v) {
		r.max = v
	}
}
