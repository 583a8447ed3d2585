package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

func TestAViewIsKeptUntilSomethingChangesThatThePlannerReads(t *testing.T) {
	machines, nodes := make([]v1alpha1.Machine, 2), make([]corev1.Node, 2)
	for i, name := range []string{"cp1", "w1"} {
		machines[i].Name, machines[i].ResourceVersion = name, "1"
		machines[i].Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3"}
		nodes[i].Name, nodes[i].ResourceVersion = name, "1"
		nodes[i].Status.NodeInfo.KubeletVersion = "v1.36.3"
	}
	var views fleet.Views
	node := fleet.NodeOf(&nodes[1])
	_, _, same := views.Kept("a", 0, &machines[1], node)
	assert.False(t, same, "nothing was made yet")
	made, host := views.Of("a", 7, machines, nodes, &machines[1])
	view, own, same := views.Kept("a", 7, &machines[1], node)
	assert.True(t, same)
	assert.Same(t, made, view)
	assert.Equal(t, host, own)
	_, _, same = views.Kept("a", 8, &machines[1], node)
	assert.False(t, same, "something has changed since")
	_, _, same = views.Kept("b", 7, &machines[1], node)
	assert.False(t, same, "of another namespace")
	changed := machines[1].DeepCopy()
	changed.Status.Versions.Kubelet = "v1.37.2"
	_, _, same = views.Kept("a", 7, changed, node)
	assert.False(t, same, "the machine itself is another, and nobody has told yet")
	away := *node
	away.Ready = true
	_, _, same = views.Kept("a", 7, &machines[1], &away)
	assert.False(t, same, "its node is")
}

func TestThePlannerMakesTheSameOfMachinesThatDifferInWhatItDoesNotRead(t *testing.T) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp1"}}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3"}
	m.Status.Assignment = &v1alpha1.Assignment{ID: "1"}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Machine)
		same   bool
	}{
		"a condition":                  {func(m *v1alpha1.Machine) { m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting}} }, true},
		"a grant":                      {func(m *v1alpha1.Machine) { m.Status.Grant = &v1alpha1.Grant{ID: "g"} }, true},
		"what runs":                    {func(m *v1alpha1.Machine) { m.Status.Versions.Kubelet = "v1.37.2" }, false},
		"what is wished for":           {func(m *v1alpha1.Machine) { m.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"} }, false},
		"the minors that it passes":    {func(m *v1alpha1.Machine) { m.Status.PassedMinors = []v1alpha1.PassedMinor{{Minor: "1.37"}} }, false},
		"where its control plane goes": {func(m *v1alpha1.Machine) { m.Status.Assignment.Target.ControlPlane = "v1.37.2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := m.DeepCopy()
			tc.change(other)
			assert.Equal(t, tc.same, fleet.SameToPlanner(m, other))
		})
	}
}
