package adopt

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	labelControlPlane = "node-role.kubernetes.io/control-plane"
	labelComponent    = "component"
	apiServer         = "kube-apiserver"
)

// controlPlane says whether the host runs an API server, and which version. The
// static pod decides, not the label: labels get lost, and pods are what runs.
func (a *adopter) controlPlane(n *corev1.Node) (bool, v1alpha1.KubernetesVersion) {
	labelled := upgrade.ControlPlaneNode(n.Labels)
	pod := a.apiServerPod(n.Name)
	if pod == nil {
		if labelled {
			a.warn("node %s is labelled as a control plane but has no static pod with %s=%s: adopted as control plane without a control-plane version", n.Name, labelComponent, apiServer)
		}
		return labelled, ""
	}
	if !labelled {
		a.warn("node %s runs an API server but lacks the label %s: adopted as control plane", n.Name, labelControlPlane)
	}
	image := imageOf(pod, apiServer)
	version := versionOfImage(image)
	if _, ok := upgrade.ParseKubernetes(version); !ok {
		a.warn("node %s: the tag of its API server's image %q is no version: left out, so Refit will leave the control plane alone", n.Name, image)
		return true, ""
	}
	return true, v1alpha1.KubernetesVersion(version)
}

func (a *adopter) apiServerPod(node string) *corev1.Pod {
	for i := range a.cluster.StaticPods {
		p := &a.cluster.StaticPods[i]
		_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
		if mirror && p.Spec.NodeName == node && p.Labels[labelComponent] == apiServer {
			return p
		}
	}
	return nil
}

// controlPlaneRoles adds Worker where the node takes ordinary pods.
func controlPlaneRoles(n *corev1.Node) []v1alpha1.Role {
	for _, t := range n.Spec.Taints {
		if upgrade.ControlPlaneNode(map[string]string{t.Key: ""}) && t.Effect != corev1.TaintEffectPreferNoSchedule {
			return []v1alpha1.Role{v1alpha1.RoleControlPlane}
		}
	}
	return []v1alpha1.Role{v1alpha1.RoleControlPlane, v1alpha1.RoleWorker}
}

func imageOf(p *corev1.Pod, container string) string {
	for _, c := range p.Spec.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// versionOfImage is the tag of an image. Tags cannot hold a plus, so that kubeadm writes an underscore for it.
func versionOfImage(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndex(image, "/")
	_, tag, _ := strings.Cut(image[slash+1:], ":")
	return strings.ReplaceAll(tag, "_", "+")
}
