package adopt_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/adopt"
)

func node(name, kubelet, runtime string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: runtime}},
	}
}

func controlPlane(n corev1.Node) corev1.Node {
	n.Labels["node-role.kubernetes.io/control-plane"] = ""
	n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	return n
}

func apiServerOn(node, image string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-apiserver-" + node, Namespace: "kube-system",
			Labels:      map[string]string{"component": "kube-apiserver", "tier": "control-plane"},
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "kube-apiserver", Image: image}}},
	}
}

func TestAFleetIsWrittenDownAsItRuns(t *testing.T) {
	got := adopt.Adopt(adopt.Cluster{
		Nodes: []corev1.Node{
			node("worker-2", "v1.36.3", "containerd://1.7.35"),
			controlPlane(node("cp-1", "v1.36.3", "containerd://1.7.35")),
			node("worker-1", "v1.36.3", "containerd://1.7.35"),
		},
		StaticPods: []corev1.Pod{apiServerOn("cp-1", "registry.k8s.io/kube-apiserver:v1.36.2@sha256:abc")},
	}, "refit")
	assert.Empty(t, got.Warnings)

	require.Len(t, got.Machines, 3)
	assert.Equal(t, "cp-1", got.Machines[0].Name)
	assert.Equal(t, []v1alpha1.Role{v1alpha1.RoleControlPlane}, got.Machines[0].Spec.Roles)
	assert.Equal(t, map[string]string{"refit.dev/pool": "control-plane"}, got.Machines[0].Labels)
	assert.Equal(t, "worker-1", got.Machines[1].Name)
	assert.Equal(t, map[string]string{"refit.dev/pool": "workers"}, got.Machines[1].Labels)
	for _, m := range got.Machines {
		assert.Nil(t, m.Spec.Versions, "what a pool shares is left to its template")
		assert.Equal(t, "refit", m.Namespace)
	}

	require.Len(t, got.Deployments, 2)
	containerd := &v1alpha1.ContainerRuntime{Name: "containerd", Version: "1.7.35"}
	assert.Equal(t, "control-plane", got.Deployments[0].Name)
	assert.Equal(t, &v1alpha1.Versions{Kubelet: "v1.36.3", ControlPlane: "v1.36.2", ContainerRuntime: containerd}, got.Deployments[0].Spec.Template.Spec.Versions)
	assert.Equal(t, "workers", got.Deployments[1].Name)
	assert.Equal(t, &v1alpha1.Versions{Kubelet: "v1.36.3", ContainerRuntime: containerd}, got.Deployments[1].Spec.Template.Spec.Versions)
	assert.Equal(t, map[string]string{"refit.dev/pool": "workers"}, got.Deployments[1].Spec.Selector.MatchLabels)
}

func TestRolesComeFromWhatRunsAndNotFromLabels(t *testing.T) {
	unlabelled := node("cp", "v1.36.3", "containerd://1.7.35")
	labelOnly := controlPlane(node("cp", "v1.36.3", "containerd://1.7.35"))
	impostor := apiServerOn("cp", "kube-apiserver:v1.36.3")
	impostor.Annotations = nil
	for name, tc := range map[string]struct {
		node    corev1.Node
		pod     corev1.Pod
		roles   []v1alpha1.Role
		version v1alpha1.KubernetesVersion
		warning string
	}{
		"label was removed":             {unlabelled, apiServerOn("cp", "kube-apiserver:v1.36.3"), []v1alpha1.Role{"ControlPlane", "Worker"}, "v1.36.3", "lacks the label"},
		"label without an API server":   {labelOnly, apiServerOn("other", "x"), []v1alpha1.Role{"ControlPlane"}, "", "no static pod"},
		"ordinary pod that looks alike": {unlabelled, impostor, []v1alpha1.Role{"Worker"}, "", ""},
		"tag without a version":         {labelOnly, apiServerOn("cp", "registry:5000/kube-apiserver"), []v1alpha1.Role{"ControlPlane"}, "", "is no version"},
		"tag with a plus":               {labelOnly, apiServerOn("cp", "registry:5000/kube-apiserver:v1.29.6_k3s1"), []v1alpha1.Role{"ControlPlane"}, "v1.29.6+k3s1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := adopt.Adopt(adopt.Cluster{Nodes: []corev1.Node{tc.node}, StaticPods: []corev1.Pod{tc.pod}}, "refit")
			assert.Equal(t, tc.roles, got.Machines[0].Spec.Roles)
			assert.Equal(t, tc.version, got.Deployments[0].Spec.Template.Spec.Versions.ControlPlane)
			if tc.warning == "" {
				assert.Empty(t, got.Warnings)
				return
			}
			require.Len(t, got.Warnings, 1)
			assert.Contains(t, got.Warnings[0], tc.warning)
			assert.Contains(t, got.Warnings[0], "cp")
		})
	}
}

func TestVersionsAreWrittenInTheSpellingOfTheSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime string
		want    *v1alpha1.ContainerRuntime
	}{
		"containerd":            {"containerd://1.7.35", &v1alpha1.ContainerRuntime{Name: "containerd", Version: "1.7.35"}},
		"containerd with a v":   {"containerd://v2.1.4", &v1alpha1.ContainerRuntime{Name: "containerd", Version: "2.1.4"}},
		"Debian's containerd":   {"containerd://1.6.20~ds1", &v1alpha1.ContainerRuntime{Name: "containerd", Version: "1.6.20"}},
		"a vendor's containerd": {"containerd://1.7.11-k3s2", &v1alpha1.ContainerRuntime{Name: "containerd", Version: "1.7.11"}},
		"cri-o":                 {"cri-o://1.31.0", &v1alpha1.ContainerRuntime{Name: "cri-o", Version: "1.31.0"}},
		"docker":                {"docker://20.10.7", nil},
		"unknown":               {"containerd://Unknown", nil},
		"nothing":               {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := adopt.Adopt(adopt.Cluster{Nodes: []corev1.Node{node("w", "v1.36.3", tc.runtime)}}, "refit")
			assert.Equal(t, tc.want, got.Deployments[0].Spec.Template.Spec.Versions.ContainerRuntime)
			assert.Equal(t, tc.want == nil, len(got.Warnings) == 1, "%v", got.Warnings)
		})
	}
	got := adopt.Adopt(adopt.Cluster{Nodes: []corev1.Node{node("w", "v1.29.0-eks-a5ec690", "containerd://1.7.2")}}, "refit")
	assert.EqualValues(t, "v1.29.0-eks-a5ec690", got.Deployments[0].Spec.Template.Spec.Versions.Kubelet)
}

func TestAMixedPoolIsAskedForNothing(t *testing.T) {
	got := adopt.Adopt(adopt.Cluster{Nodes: []corev1.Node{
		node("w1", "v1.36.3", "containerd://1.7.35"), node("w2", "v1.36.2", "containerd://1.7.35"), node("w3", "?", "containerd://1.7.35"),
	}}, "refit")
	v := got.Deployments[0].Spec.Template.Spec.Versions
	assert.Empty(t, v.Kubelet)
	assert.Equal(t, v1alpha1.ReleaseVersion("1.7.35"), v.ContainerRuntime.Version)
	require.Len(t, got.Warnings, 2)
	assert.Contains(t, got.Warnings[1], "Unknown: w3; v1.36.2: w2; v1.36.3: w1")
}

func TestWhatIsAdoptedIsNeverChanged(t *testing.T) {
	first := adopt.Cluster{Nodes: []corev1.Node{node("w1", "v1.36.3", "containerd://1.7.35")}}
	done := adopt.Adopt(first, "refit")
	again := first
	again.Machines, again.Deployments = done.Machines, done.Deployments
	got := adopt.Adopt(again, "refit")
	assert.Empty(t, got.Machines)
	assert.Empty(t, got.Deployments)

	again.Nodes = append(again.Nodes, node("w2", "v1.36.3", "containerd://1.7.35"), node("w3", "v1.35.0", "containerd://1.7.35"))
	got = adopt.Adopt(again, "refit")
	assert.Empty(t, got.Deployments)
	require.Len(t, got.Machines, 2)
	assert.Equal(t, map[string]string{"refit.dev/pool": "workers"}, got.Machines[0].Labels, "a new host that runs what the pool wishes joins it")
	assert.Empty(t, got.Machines[1].Labels, "one that does not is not upgraded by being adopted")
	require.Len(t, got.Warnings, 1)
	assert.Contains(t, got.Warnings[0], "w3")
}

func TestAnOldLabelIsOneOfAControlPlaneToo(t *testing.T) {
	old := node("cp-1", "v1.23.4", "containerd://1.5.9")
	old.Labels["node-role.kubernetes.io/master"] = ""
	old.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}}
	got := adopt.Adopt(adopt.Cluster{Nodes: []corev1.Node{old}}, "refit")
	require.Len(t, got.Machines, 1)
	assert.Equal(t, []v1alpha1.Role{v1alpha1.RoleControlPlane}, got.Machines[0].Spec.Roles)
	require.Len(t, got.Warnings, 1)
	assert.Contains(t, got.Warnings[0], "cp-1 is labelled as a control plane but has no static pod")
}
