package metrics

import "github.com/refit-dev/refit/api/v1alpha1"

// Components whose versions are counted.
var Components = []string{"kubelet", "kube-proxy", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "container-runtime", "os", "kernel"}

// versions counts what is observed. What a host does not have, or has not told, is not counted.
func (s *sample) versions() {
	counts := map[string]map[string]int{}
	for _, c := range Components {
		counts[c] = map[string]int{}
	}
	for _, m := range s.fleet.Machines {
		for component, version := range observed(&m.Status) {
			if version != "" {
				counts[component][version]++
			}
		}
	}
	for _, component := range Components {
		for version, n := range bounded(counts[component]) {
			s.emit(machineVersions, n, component, version)
		}
	}
}

func observed(st *v1alpha1.MachineStatus) map[string]string {
	out := map[string]string{}
	if v := st.Versions; v != nil {
		out["kubelet"], out["kube-proxy"], out["etcd"] = v.Kubelet, v.KubeProxy, v.Etcd
		if cp := v.ControlPlane; cp != nil {
			out["kube-apiserver"], out["kube-controller-manager"], out["kube-scheduler"] = cp.APIServer, cp.ControllerManager, cp.Scheduler
		}
		if r := v.ContainerRuntime; r != nil {
			out["container-runtime"] = r.Text
		}
	}
	if os := st.OS; os != nil {
		out["os"], out["kernel"] = os.PrettyName, os.Kernel
	}
	return out
}
