package upgrade

import (
	"fmt"
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// APIServerSign is what says that kubelets meet an API server of a host, whatever its
// version. It is decided here alone, from facts, status, roles and Node; who asks which
// API servers there are asks for it, and never for versions that parse.
type APIServerSign string

// What is known, from the most certain down. Whatever is not NoAPIServer counts for skew,
// and while its version is not known no kubelet can be judged.
const (
	// NoAPIServer says that the host was looked at, and nothing says that there is one.
	NoAPIServer APIServerSign = ""
	// APIServerOnHost is an answer, a manifest or a component of a control plane on the host.
	APIServerOnHost APIServerSign = "OnHost"
	// APIServerByRole is spec.roles alone.
	APIServerByRole APIServerSign = "ByRole"
	// APIServerByLabel is the label of the Node alone.
	APIServerByLabel APIServerSign = "ByLabel"
	// APIServerPossible says that the host could not be looked at.
	APIServerPossible APIServerSign = "Possible"
)

// componentAPIServer is the name of the API server's static pod and of its manifest.
const componentAPIServer = "kube-apiserver"

// controlComponents are the static pods that make a control plane. etcd alone makes none.
var controlComponents = []string{componentAPIServer, "kube-controller-manager", "kube-scheduler"}

// apiServerProbes are those whose failure leaves open whether there is an API server.
var apiServerProbes = []string{"controlPlane", "controlPlane.manifests", "staticPods"}

// APIServerSign is what the host itself says.
func (f *Facts) APIServerSign() APIServerSign {
	switch c := f.Control; {
	case c.runs(), slices.ContainsFunc(f.StaticPods, func(pod StaticPodFacts) bool { return pod.Name == componentAPIServer }):
		return APIServerOnHost
	case slices.ContainsFunc(f.Problems, func(p Problem) bool { return slices.Contains(apiServerProbes, p.Field) }):
		return APIServerPossible
	case c != nil && c.Etcd == "" && len(c.Manifests) == 0: // said to be there, and nothing of it
		return APIServerPossible
	}
	return NoAPIServer
}

// runs says that a component of a control plane answers, runs or has a manifest.
func (c *ControlFacts) runs() bool {
	if c == nil {
		return false
	}
	return c.APIServer != "" || c.ControllerManager != "" || c.Scheduler != "" ||
		slices.ContainsFunc(controlComponents, func(name string) bool { _, ok := c.Manifests[name]; return ok })
}

// observed is the control plane as the Machine reports it: none without an API server,
// and one of which nothing but an unknown API server is said where the host could not be looked at.
func (f *Facts) observedControlPlane() *v1alpha1.ObservedControlPlane {
	switch f.APIServerSign() {
	case NoAPIServer:
		return nil
	case APIServerPossible:
		return &v1alpha1.ObservedControlPlane{APIServer: v1alpha1.Unknown}
	}
	c := f.Control
	if c == nil {
		c = &ControlFacts{}
	}
	return &v1alpha1.ObservedControlPlane{
		APIServer: orUnknown(c.APIServer), ControllerManager: orUnknown(c.ControllerManager), Scheduler: orUnknown(c.Scheduler),
	}
}

// reportedSign is what the host says of itself, as its Machine reports it.
func reportedSign(v *v1alpha1.ObservedVersions) APIServerSign {
	switch {
	case v == nil || v.ControlPlane == nil:
		return NoAPIServer
	case *v.ControlPlane == v1alpha1.ObservedControlPlane{}, *v.ControlPlane == v1alpha1.ObservedControlPlane{APIServer: v1alpha1.Unknown}:
		return APIServerPossible
	}
	return APIServerOnHost
}

// signOf is what everything that is known of a Machine says.
func signOf(m *v1alpha1.Machine, node *NodeState, facts *Facts) APIServerSign {
	seen := reportedSign(m.Status.Versions)
	if facts != nil {
		seen = facts.APIServerSign()
	}
	switch {
	case seen == APIServerOnHost:
		return seen
	case slices.Contains(m.Spec.Roles, v1alpha1.RoleControlPlane):
		return APIServerByRole
	case node != nil && ControlPlaneNode(node.Labels):
		return APIServerByLabel
	}
	return seen
}

// apiServer is the version of the API server on the host.
func (h HostState) apiServer() (Version, *Blocked) {
	text := h.control().APIServer
	v, ok := ParseKubernetes(text)
	switch {
	case ok:
		return v, nil
	case !h.Managed:
		return v, wait(ReasonVersionUnknown, "Node %s is a control plane without a Machine, so nobody reports which version its API server is, and no kubelet can be judged: adopt it (kubectl refit adopt --apply) and install the agent there; a plan from files takes its Machine and its facts", h.Name)
	case h.APIServer == APIServerByLabel:
		return v, wait(ReasonVersionUnknown, "Node %s is labelled as one of a control plane, and nobody reports which version its API server is, so no kubelet can be judged: add ControlPlane to spec.roles of its Machine and see that its agent runs; if no API server runs there, take the label off the Node", h.Name)
	case h.APIServer == APIServerPossible:
		return v, wait(ReasonVersionUnknown, "it could not be found out whether %s has an API server, so no kubelet can be judged: see on that host why its static pod manifests cannot be read (refit-agent facts has it under problems)", h.Name)
	case !h.IsControlPlane():
		return v, wait(ReasonVersionUnknown, "%s has an API server that %s, so no kubelet can be judged: see that it answers, and add ControlPlane to spec.roles of its Machine", h.Name, noVersion(text))
	}
	return v, wait(ReasonVersionUnknown, "the API server of %s %s: nothing is planned on a guess; see that its agent runs and its API server answers", h.Name, noVersion(text))
}

// noVersion says what is wrong with a version that is none.
func noVersion(text string) string {
	if text == "" {
		return "has never reported its version"
	}
	return fmt.Sprintf("reports version %q, which is no version", text)
}

// component is a part of a control plane next to its API server, and the version that is reported of it.
type component struct{ name, version string }

func (h HostState) components() []component {
	c := h.control()
	return []component{{"controller manager", c.ControllerManager}, {"scheduler", c.Scheduler}}
}

// oldestComponent is the oldest of the API server, whose version is given, and what is known of the rest.
func (h HostState) oldestComponent(api Version) Version {
	all := versionRange{api, api}
	for _, c := range h.components() {
		if v, ok := ParseKubernetes(c.version); ok {
			all.add(v)
		}
	}
	return all.min
}

// componentsUnknown holds a control plane of which a component does not say its version, unless
// another is known to lag: then its upgrade is half done, and going on with that moves no API server.
func (h HostState) componentsUnknown(api Version) *Blocked {
	if h.oldestComponent(api).LessThan(api) {
		return nil
	}
	for _, c := range h.components() {
		if _, ok := ParseKubernetes(c.version); !ok {
			return wait(ReasonVersionUnknown, "the %s of %s %s: nothing is planned on a guess; see that its agent runs, and why the %s does not (crictl ps -a on the host)", c.name, h.Name, noVersion(c.version), c.name)
		}
	}
	return nil
}
