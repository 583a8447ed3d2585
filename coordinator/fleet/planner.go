package fleet

import (
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
)

// ForPlanner is the fleet as the planner wants it. Nodes without a Machine count for
// skew and are never moved; those with one say what a kubelet that does not run was last.
func ForPlanner(machines []v1alpha1.Machine, nodes []corev1.Node) upgrade.Fleet {
	var f upgrade.Fleet
	managed, kubelets := map[string]bool{}, map[string]string{}
	for i := range nodes {
		kubelets[nodes[i].Name] = nodes[i].Status.NodeInfo.KubeletVersion
	}
	for i := range machines {
		managed[machines[i].Name] = true
		state := upgrade.StateOf(&machines[i])
		state.LastKubelet = kubelets[state.Name]
		f.Hosts = append(f.Hosts, state)
	}
	for i := range nodes {
		if managed[nodes[i].Name] {
			continue
		}
		f.Hosts = append(f.Hosts, upgrade.Unmanaged(nodes[i].Name, nodes[i].Labels, nodes[i].Status.NodeInfo.KubeletVersion))
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
