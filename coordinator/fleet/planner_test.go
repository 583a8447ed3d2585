package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func machine(name string, role v1alpha1.Role, wish v1alpha1.Versions, seen v1alpha1.ObservedVersions) v1alpha1.Machine {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Roles, m.Spec.Versions = []v1alpha1.Role{role}, &wish
	m.Status.Versions = &seen
	return m
}

func node(name, kubelet string, labels ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	n.Status.NodeInfo.KubeletVersion = kubelet
	for _, label := range labels {
		n.Labels[label] = ""
	}
	return n
}

func TestANodeSaysWhatAKubeletThatDoesNotRunWasLast(t *testing.T) {
	api := &v1alpha1.ObservedControlPlane{APIServer: "v1.37.2", ControllerManager: "v1.37.2", Scheduler: "v1.37.2"}
	machines := []v1alpha1.Machine{
		machine("cp1", v1alpha1.RoleControlPlane, v1alpha1.Versions{}, v1alpha1.ObservedVersions{Kubelet: "v1.37.2", ControlPlane: api}),
		machine("w1", v1alpha1.RoleWorker, v1alpha1.Versions{Kubelet: "v1.37.2"}, v1alpha1.ObservedVersions{Kubelet: v1alpha1.Unknown}),
	}
	a, blocked := upgrade.NextAssignment(fleet.ForPlanner(machines, []corev1.Node{node("cp1", "v1.37.2"), node("w1", "v1.36.3")}), &machines[1])
	require.Nil(t, blocked)
	assert.EqualValues(t, "v1.37.2", a.Target.Kubelet)
	_, blocked = upgrade.NextAssignment(fleet.ForPlanner(machines, nil), &machines[1])
	require.NotNil(t, blocked)
	assert.Equal(t, upgrade.ReasonVersionUnknown, blocked.Reason)
}

func TestAControlPlaneWithoutAMachineCountsByItsLabels(t *testing.T) {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		t.Run(label, func(t *testing.T) {
			machines := []v1alpha1.Machine{machine("w1", v1alpha1.RoleWorker, v1alpha1.Versions{Kubelet: "v1.37.2"}, v1alpha1.ObservedVersions{Kubelet: "v1.36.3"})}
			nodes := []corev1.Node{node("w1", "v1.36.3"), node("cp1", "v1.36.3", label)}
			_, blocked := upgrade.NextAssignment(fleet.ForPlanner(machines, nodes), &machines[0])
			require.NotNil(t, blocked)
			assert.Equal(t, upgrade.ReasonVersionUnknown, blocked.Reason)
			assert.Contains(t, blocked.Message, "Node cp1 is a control plane without a Machine")
		})
	}
}

// A Machine beside the Node takes nothing away from what the Node's labels say.
func TestAControlPlaneCountsByItsLabelsNextToItsMachine(t *testing.T) {
	api := &v1alpha1.ObservedControlPlane{APIServer: "v1.37.2", ControllerManager: "v1.37.2", Scheduler: "v1.37.2"}
	machines := []v1alpha1.Machine{
		machine("cp1", v1alpha1.RoleControlPlane, v1alpha1.Versions{}, v1alpha1.ObservedVersions{Kubelet: "v1.37.2", ControlPlane: api}),
		machine("cp2", v1alpha1.RoleWorker, v1alpha1.Versions{}, v1alpha1.ObservedVersions{}),
		machine("w1", v1alpha1.RoleWorker, v1alpha1.Versions{Kubelet: "v1.37.2"}, v1alpha1.ObservedVersions{Kubelet: "v1.36.3"}),
	}
	machines[1].Status.Versions = nil
	nodes := []corev1.Node{node("cp1", "v1.37.2"), node("cp2", "v1.36.3", "node-role.kubernetes.io/control-plane"), node("w1", "v1.36.3")}
	all := fleet.ForPlanner(machines, nodes)
	_, blocked := upgrade.NextAssignment(all, &machines[2])
	require.NotNil(t, blocked)
	assert.Equal(t, upgrade.ReasonVersionUnknown, blocked.Reason)
	assert.Contains(t, blocked.Message, "Node cp2 is labelled as one of a control plane")
	_, blocked = upgrade.NextAssignment(all, &machines[1])
	require.NotNil(t, blocked)
	assert.Equal(t, upgrade.ReasonRoleMismatch, blocked.Reason)
	delete(nodes[1].Labels, "node-role.kubernetes.io/control-plane")
	a, blocked := upgrade.NextAssignment(fleet.ForPlanner(machines, nodes), &machines[2])
	require.Nil(t, blocked, "what the message says is the way out")
	assert.EqualValues(t, "v1.37.2", a.Target.Kubelet)
}
