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
	// LastKubelet is the kubelet that was last seen where none runs: what is installed, or
	// what the Node reported. It counts for skew, and is what a repair starts from.
	LastKubelet string
	// APIServer says whether kubelets meet an API server of this host, and how that is known.
	APIServer APIServerSign
	// NotReady says that the Node is not ready, as the cluster sees it.
	NotReady bool
	// PackagesBroken says what is half installed on the host, "" for nothing: a daemon that
	// does not answer is so because of it.
	PackagesBroken string
	// Managed says that the host has a Machine; others count for skew but are never moved.
	Managed bool
	// Wish is spec.versions of a managed host.
	Wish v1alpha1.Versions
	// RequestedAPIs are the APIs that go away and that clients asked the host's API server for.
	RequestedAPIs []v1alpha1.RequestedAPI
	// RemovedAPIsPass says that spec vouches for those clients.
	RemovedAPIsPass bool
	// EtcdMoved says that a hop before this one, foreseen and not done, brings another etcd:
	// which one is not known before it is there.
	EtcdMoved bool
	// OSPending says that spec.os or spec.kubelet.configuration asks for something that is not observed.
	OSPending bool
	// RenewalDue says that certificates of the host are due for the renewal that spec asks for.
	RenewalDue bool
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
// elsewhere) is an unmanaged host with the versions of its live API servers, where the
// caller knows them.
type Fleet struct {
	Hosts []HostState
	// HopPatch gives the release to use for a minor that is only passed through: v1.36 → v1.36.3.
	HopPatch map[string]string
	// HopUnknown says why the release for such a minor is not known.
	HopUnknown map[string]string
}

// NodeState is what counts of the Node of a host.
type NodeState struct {
	Labels map[string]string
	// Kubelet is the version that the Node reported last; "" where it is not known.
	Kubelet  string
	NotReady bool
}

// StateOf is the state of the host of a Machine, with its Node and its facts where they
// are known. Facts are newer than what the Machine reports of the same things.
func StateOf(m *v1alpha1.Machine, node *NodeState, facts *Facts) HostState {
	h := HostState{Name: m.Name, Roles: m.Spec.Roles, APIServer: signOf(m, node, facts), Managed: true, Record: RecordOf(m)}
	if node != nil {
		h.LastKubelet, h.NotReady = node.Kubelet, node.NotReady
	}
	if facts != nil && facts.LastKubelet() != "" {
		h.LastKubelet = facts.LastKubelet()
	}
	if m.Status.Versions != nil {
		h.Versions = *m.Status.Versions
	}
	if m.Spec.Versions != nil {
		h.Wish = *m.Spec.Versions
	}
	h.OSPending = osPending(m) || configurationPending(m)
	h.RenewalDue = RenewalReported(m.Spec, m.Status) != ""
	h.Sidelined = m.Spec.Paused || m.Spec.Availability == v1alpha1.AvailabilityOutOfService || Failed(m)
	h.RequestedAPIs, h.RemovedAPIsPass = m.Status.RequestedAPIs, ignores(m.Spec, FindingRemovedAPI)
	h.PackagesBroken = packagesBroken(m, facts)
	h.First = m.Status.Assignment != nil && m.Status.Assignment.KubeadmRole == v1alpha1.KubeadmFirst
	return h
}

// ClassDrainBlocked is the class of a rollout failure that changed nothing on the host.
const ClassDrainBlocked = "DrainBlocked"

// Failed says that an operation on the machine failed and nothing has cleared that
// since. A drain that was blocked changed nothing on the host and does not count.
func Failed(m *v1alpha1.Machine) bool {
	f := m.Status.RolloutFailure
	return f != nil && f.Class != ClassDrainBlocked
}

// RecordOf lists the sets of versions that a Machine's history says the host ran before.
func RecordOf(m *v1alpha1.Machine) []v1alpha1.Versions {
	var out []v1alpha1.Versions
	for _, h := range m.Status.History {
		if h.State == v1alpha1.OperationSuccessful && h.From != nil {
			out = append(out, *h.From)
		}
	}
	return out
}

// IsControlPlane says whether the host is to have an API server of the cluster.
func (h HostState) IsControlPlane() bool { return slices.Contains(h.Roles, v1alpha1.RoleControlPlane) }

// isEtcd says whether the host is to have a member of etcd that is moved for itself.
func (h HostState) isEtcd() bool {
	return slices.Contains(h.Roles, v1alpha1.RoleEtcd) && !h.IsControlPlane()
}

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

// kubeletRuns says that the observed kubelet is one that runs.
func (h HostState) kubeletRuns() bool {
	_, ok := ParseKubernetes(h.Versions.Kubelet)
	return ok
}

// broken says that the host is down already: what can mend its kubelet takes nothing more away.
func (h HostState) broken() bool { return h.NotReady || !h.kubeletRuns() }

// kubelet is the observed kubelet; of one that does not run, what it was last.
func (h HostState) kubelet() (Version, *Blocked) {
	text := h.Versions.Kubelet
	if !h.kubeletRuns() {
		text = h.LastKubelet
	}
	v, ok := ParseKubernetes(text)
	if !ok {
		return v, wait(ReasonVersionUnknown, "the kubelet of %s reports version %q, which is no version: nothing is planned on a guess; see that its agent and its kubelet run", h.Name, h.Versions.Kubelet)
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
