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
// elsewhere) is an unmanaged host with the versions of its live API servers, where the
// caller knows them.
type Fleet struct {
	Hosts []HostState
	// HopPatch gives the release to use for a minor that is only passed through: v1.36 → v1.36.3.
	HopPatch map[string]string
}

// StateOf is the state of the host of a Machine.
func StateOf(m *v1alpha1.Machine) HostState {
	h := HostState{Name: m.Name, Roles: m.Spec.Roles, Managed: true, Record: RecordOf(m)}
	if m.Status.Versions != nil {
		h.Versions = *m.Status.Versions
	}
	if m.Spec.Versions != nil {
		h.Wish = *m.Spec.Versions
	}
	osMet, _, _ := UpToDate(v1alpha1.MachineSpec{MachineTemplateSpec: v1alpha1.MachineTemplateSpec{OS: m.Spec.OS}}, m.Status)
	h.OSPending = m.Spec.OS != nil && !osMet
	h.Sidelined = m.Spec.Paused || m.Spec.Availability == v1alpha1.AvailabilityOutOfService || Failed(m)
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

// hasAPIServer says whether kubelets meet an API server of this host, whatever its roles say.
func (h HostState) hasAPIServer() bool {
	return h.IsControlPlane() || runsControlPlane(h.Versions.ControlPlane)
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

// apiServer is the version of the API server on the host.
func (h HostState) apiServer() (Version, *Blocked) {
	v, ok := ParseKubernetes(h.control().APIServer)
	if !ok && !h.Managed {
		return v, wait(ReasonVersionUnknown, "Node %s is a control plane without a Machine, so nobody reports which version its API server is, and no kubelet can be judged: adopt it (kubectl refit adopt --apply) and install the agent there; a plan from files takes its Machine and its facts", h.Name)
	}
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
