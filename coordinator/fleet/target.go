package fleet

import (
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// TargetText is what a hop leads to, for people.
func TargetText(t v1alpha1.Target) string {
	var parts []string
	add := func(what, version string) {
		if version != "" {
			parts = append(parts, what+" "+version)
		}
	}
	add("control plane", string(t.ControlPlane))
	add("kubelet", string(t.Kubelet))
	add("etcd", string(t.Etcd))
	if t.ContainerRuntime != nil {
		add(string(t.ContainerRuntime.Name), string(t.ContainerRuntime.Version))
	}
	if t.OS {
		parts = append(parts, "packages and settings")
	}
	if t.Certificates {
		parts = append(parts, "certificates of kubeadm")
	}
	return strings.Join(parts, ", ")
}
