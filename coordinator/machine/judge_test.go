package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestOverriddenFieldsAreReleasedWithACommandThatExists(t *testing.T) {
	for name, tc := range map[string]struct {
		fields []string
		want   string
	}{
		"a field": {
			[]string{"spec.versions.kubelet"},
			`kubectl patch machine w2 -n refit --type json -p '[{"op":"remove","path":"/spec/versions/kubelet"}]'`,
		},
		"two fields": {
			[]string{"spec.paused", "spec.versions.kubelet"},
			`kubectl patch machine w2 -n refit --type json -p '[{"op":"remove","path":"/spec/paused"},{"op":"remove","path":"/spec/versions/kubelet"}]'`,
		},
		"an item of a list, which a patch cannot name": {
			[]string{"spec.paused", `spec.os.packages[name="openssl"].version`},
			"kubectl edit machine w2 -n refit, and remove them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var overrides []board.Override
			for _, field := range tc.fields {
				overrides = append(overrides, board.Override{Field: field, Manager: "kubectl-edit"})
			}
			assert.Equal(t, tc.want, releaseCommand(types.NamespacedName{Namespace: "refit", Name: "w2"}, overrides))
		})
	}
}

func TestAWaitingMachineSaysWhatRunsAndWhatIsWanted(t *testing.T) {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: "w1", Generation: 1}}
	m.Status.Assignment = &v1alpha1.Assignment{ID: "a", Generation: 1}
	m.Status.Plan = &v1alpha1.PlanStatus{AssignmentID: "a", Hash: "sha256:x"}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue}}
	m.Spec.Versions = &v1alpha1.Versions{ContainerRuntime: &v1alpha1.ContainerRuntime{Name: "containerd", Version: "2.4.2"}}
	m.Status.Versions = &v1alpha1.ObservedVersions{ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28"}}
	s := &scope{key: types.NamespacedName{Namespace: "refit", Name: "w1"}, machine: m, view: &fleet.Machine{Machine: m}}
	s.wishMet, _, s.difference = upgrade.UpToDate(m.Spec, m.Status)
	r := &Reconciler{Board: &board.Board{}}
	c := r.waiting(s)
	require.NotNil(t, c)
	assert.Equal(t, "the plan is ready, and a place is being looked for (containerd runs 1.7.28, wanted 2.4.2)", c.Message)
}

func TestAMachineWhoseDrainIsTriedAgainLaterSaysWhyItWasBlocked(t *testing.T) {
	m := &v1alpha1.Machine{}
	m.Status.Versions = &v1alpha1.ObservedVersions{}
	m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassDrainBlocked, Failure: v1alpha1.Failure{Reason: "PDBOverlap"}}
	for reason, want := range map[string]string{"RetryLater": "PDBOverlap", "Paused": "Paused"} {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: reason}}
		assert.Equal(t, want, upToDate(&scope{machine: m, view: &fleet.Machine{Machine: m}}).Reason)
	}
}
