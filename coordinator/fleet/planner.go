package fleet

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
)

// ForPlanner is the fleet as the planner wants it. Nodes without a Machine count for
// skew and are never moved; of those with one, labels and kubelet count next to its status.
func ForPlanner(machines []v1alpha1.Machine, nodes []corev1.Node) upgrade.Fleet {
	var f upgrade.Fleet
	f.HopPatch, f.HopUnknown = upgrade.PassedReleases(machines)
	states := map[string]*upgrade.NodeState{}
	for i := range nodes {
		n := NodeOf(&nodes[i])
		states[n.Name] = &upgrade.NodeState{Labels: n.Labels, Kubelet: n.KubeletVersion, NotReady: !n.Ready}
	}
	managed := map[string]bool{}
	for i := range machines {
		m := &machines[i]
		managed[m.Name] = true
		f.Hosts = append(f.Hosts, upgrade.StateOf(m, states[m.Name], nil))
	}
	for i := range nodes {
		if name := nodes[i].Name; !managed[name] {
			f.Hosts = append(f.Hosts, upgrade.Unmanaged(name, *states[name]))
		}
	}
	return f
}

// Observed are the versions that run, in the form of a wish; for history and undo.
func Observed(v *v1alpha1.ObservedVersions) *v1alpha1.Versions {
	if v == nil {
		return nil
	}
	out := &v1alpha1.Versions{}
	if _, ok := upgrade.ParseKubernetes(v.Kubelet); ok {
		out.Kubelet = v1alpha1.KubernetesVersion(v.Kubelet)
	}
	if v.ControlPlane != nil {
		if _, ok := upgrade.ParseKubernetes(v.ControlPlane.APIServer); ok {
			out.ControlPlane = v1alpha1.KubernetesVersion(v.ControlPlane.APIServer)
		}
	}
	if rt := v.ContainerRuntime; rt != nil {
		if parsed, ok := upgrade.ParseRuntime(rt.Version); ok {
			out.ContainerRuntime = &v1alpha1.ContainerRuntime{
				Name: v1alpha1.RuntimeName(rt.Name), Version: v1alpha1.ReleaseVersion(parsed.Version.Upstream()),
			}
		}
	}
	return out
}
