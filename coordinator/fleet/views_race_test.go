package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Eight machines look at a time. One lists, a change is counted, another lists what is there
// after it, and the first, which was slow, makes its view of the older list last.
func TestAViewOfAnOlderListIsNeverKeptAsThatOfTheLastChange(t *testing.T) {
	list := func(version, kubelet string) []v1alpha1.Machine {
		machines := make([]v1alpha1.Machine, 2)
		for i, name := range []string{"cp1", "w1"} {
			machines[i].Name, machines[i].ResourceVersion = name, "1"
			machines[i].Spec.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
			machines[i].Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.36.3"}
		}
		machines[0].Spec.Roles = []v1alpha1.Role{v1alpha1.RoleControlPlane}
		machines[0].ResourceVersion = version
		machines[0].Status.Versions = &v1alpha1.ObservedVersions{Kubelet: kubelet, ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: kubelet}}
		return machines
	}
	older, newer := list("1", "v1.36.3"), list("2", "v1.37.2")
	w1 := &newer[1]
	w1.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
	older[1] = *w1.DeepCopy()
	hop := func(v *upgrade.View, h upgrade.HostState) string {
		a, blocked := v.NextAssignment(h, w1)
		if blocked != nil {
			return blocked.Reason
		}
		return string(a.Target.Kubelet)
	}
	var views fleet.Views
	v, h := views.Of("a", 6, newer, []corev1.Node{}, w1) // the second, of the list after the change
	assert.Equal(t, "v1.37.2", hop(v, h))
	views.Of("a", 5, older, []corev1.Node{}, &older[1]) // the first, of the list before it
	v, h, same := views.Kept("a", 6, w1, nil)           // nothing has changed since: whoever looks goes by this
	if same {
		assert.Equal(t, "v1.37.2", hop(v, h), "the API server has been upgraded, and no event is to come that would say so again")
	}
}
