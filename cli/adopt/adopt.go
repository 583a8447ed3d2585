package adopt

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// The pools that Adopt makes.
const (
	PoolControlPlane = "control-plane"
	PoolWorkers      = "workers"
)

// Cluster is what is there.
type Cluster struct {
	Nodes []corev1.Node
	// StaticPods are the mirror pods of the control plane's namespace.
	StaticPods []corev1.Pod
	// Machines and Deployments that exist in the namespace already.
	Machines    []v1alpha1.Machine
	Deployments []v1alpha1.MachineDeployment
}

// Result is what has to be created, and what a person should know of it.
type Result struct {
	Machines    []v1alpha1.Machine
	Deployments []v1alpha1.MachineDeployment
	Warnings    []string
}

// Adopt returns the Machines and MachineDeployments that are missing. What exists is never changed.
func Adopt(c Cluster, namespace string) Result {
	a := &adopter{cluster: c, namespace: namespace}
	hosts := a.hosts()
	for _, pool := range []string{PoolControlPlane, PoolWorkers} {
		a.pool(pool, slices.DeleteFunc(slices.Clone(hosts), func(h host) bool { return h.pool != pool }))
	}
	return a.result
}

type adopter struct {
	cluster   Cluster
	namespace string
	result    Result
}

// host is one Node and what runs there.
type host struct {
	name     string
	pool     string
	roles    []v1alpha1.Role
	versions v1alpha1.Versions
	machine  *v1alpha1.Machine // nil until adopted
}

func (a *adopter) warn(format string, args ...any) {
	a.result.Warnings = append(a.result.Warnings, fmt.Sprintf(format, args...))
}

func (a *adopter) hosts() []host {
	out := make([]host, 0, len(a.cluster.Nodes))
	for i := range a.cluster.Nodes {
		out = append(out, a.host(&a.cluster.Nodes[i]))
	}
	slices.SortFunc(out, func(x, y host) int { return cmp.Compare(x.name, y.name) })
	return out
}

func (a *adopter) host(n *corev1.Node) host {
	h := host{name: n.Name, pool: PoolWorkers, roles: []v1alpha1.Role{v1alpha1.RoleWorker}}
	if controlPlane, version := a.controlPlane(n); controlPlane {
		h.pool, h.roles = PoolControlPlane, controlPlaneRoles(n)
		h.versions.ControlPlane = version
	}
	h.versions.Kubelet = a.kubelet(n)
	h.versions.ContainerRuntime = a.runtime(n)
	for i := range a.cluster.Machines {
		if m := &a.cluster.Machines[i]; m.Name == n.Name {
			h.machine = m
		}
	}
	return h
}

func (a *adopter) kubelet(n *corev1.Node) v1alpha1.KubernetesVersion {
	text := n.Status.NodeInfo.KubeletVersion
	if _, ok := upgrade.ParseKubernetes(text); !ok {
		a.warn("node %s: its kubelet reports version %q, which is not understood: left out, so Refit will leave the kubelet alone", n.Name, text)
		return ""
	}
	return v1alpha1.KubernetesVersion(text)
}

func (a *adopter) runtime(n *corev1.Node) *v1alpha1.ContainerRuntime {
	text := n.Status.NodeInfo.ContainerRuntimeVersion
	r, ok := upgrade.ParseRuntime(text)
	name := v1alpha1.RuntimeName(r.Name)
	if !ok || (name != v1alpha1.RuntimeContainerd && name != v1alpha1.RuntimeCRIO) {
		a.warn("node %s: its container runtime %q is not one that Refit knows: left out, so Refit will leave it alone", n.Name, text)
		return nil
	}
	return &v1alpha1.ContainerRuntime{Name: name, Version: v1alpha1.ReleaseVersion(r.Version.Upstream())}
}

// machine is the Machine of a host. Its versions are left to the template of its pool.
func (a *adopter) machine(h host, pool string) v1alpha1.Machine {
	m := v1alpha1.Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Name: h.name, Namespace: a.namespace},
		Spec:       v1alpha1.MachineSpec{Roles: h.roles},
	}
	if pool != "" {
		m.Labels = map[string]string{v1alpha1.LabelPool: pool}
	}
	return m
}
