package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

func TestAKeptViewIsOfTheFleetThatAPlannerWouldReadAnew(t *testing.T) {
	var machines []v1alpha1.Machine
	var nodes []corev1.Node
	for i, name := range []string{"cp1", "stranger", "w1", "w2"} {
		n := corev1.Node{}
		n.Name, n.ResourceVersion, n.Labels = name, "1", map[string]string{"node-role.kubernetes.io/control-plane": ""}
		n.Status.NodeInfo.KubeletVersion = "v1.36.3"
		nodes = append(nodes, n)
		if name == "stranger" {
			continue
		}
		m := v1alpha1.Machine{}
		m.Name, m.ResourceVersion, m.Spec.Roles = name, "1", []v1alpha1.Role{v1alpha1.RoleControlPlane}
		m.Spec.Versions = &v1alpha1.Versions{ControlPlane: "v1.37.2"}
		m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3", ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: []string{"v1.34.9", "", "v1.35.6", "v1.36.3"}[i]}}
		machines = append(machines, m)
	}
	var views Views
	look := func() {
		views.Of("a", 0, machines, nodes, &machines[0])
		assert.Equal(t, ForPlanner(machines, nodes), views.kept["a"].fleet(machines, nodes))
	}
	look()
	machines[1].ResourceVersion, machines[1].Status.Versions = "2", &v1alpha1.ObservedVersions{Kubelet: "v1.37.2"}
	look()
	nodes[1].ResourceVersion, nodes[1].Status.NodeInfo.KubeletVersion = "2", "v1.37.2"
	look()
	machines, nodes = machines[:2], nodes[:3]
	look()
}
