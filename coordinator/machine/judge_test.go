package machine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
)

func TestOverriddenFieldsAreNamedWithTheirManagersAndReleasedWithACommandThatExists(t *testing.T) {
	key := types.NamespacedName{Namespace: "refit", Name: "w2"}
	b := &board.Board{}
	b.SetOverrides(key, []board.Override{{Field: `spec.os.packages[name="openssl"].version`, Manager: "argocd"}, {Field: "spec.versions.kubelet", Manager: "kubectl-edit"}})
	view := &fleet.Machine{Pool: &fleet.Pool{Deployment: &v1alpha1.MachineDeployment{}}}
	c := (&Reconciler{Board: b}).overridden(&scope{key: key, view: view})
	require.NotNil(t, c)
	assert.Contains(t, c.Message, `spec.os.packages[name="openssl"].version (owned by argocd), spec.versions.kubelet (owned by kubectl-edit)`)
	assert.Contains(t, c.Message, "release them with: kubectl refit release w2 -n refit")
	assert.Nil(t, (&Reconciler{Board: &board.Board{}}).overridden(&scope{key: key, view: view, read: &v1alpha1.Machine{}}))
	assert.Nil(t, (&Reconciler{Board: b}).overridden(&scope{key: key, view: &fleet.Machine{Pool: &fleet.Pool{}}}), "it has left its pool")
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
	now := time.Date(2030, 1, 7, 12, 0, 0, 0, time.UTC)
	r := &Reconciler{Board: &board.Board{}, Now: func() time.Time { return now }}
	s.read = m
	assert.Nil(t, r.waiting(s), "the gates may have spoken in a moment")
	assert.Equal(t, unjudgedFor, s.requeue)
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "BudgetExhausted"})
	c := r.waiting(s)
	require.NotNil(t, c)
	assert.Equal(t, "BudgetExhausted", c.Reason, "what was said last stays while they look")
	now = now.Add(unjudgedFor)
	c = r.waiting(s)
	require.NotNil(t, c)
	assert.Equal(t, status.ReasonWaitingForSlot, c.Reason)
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

func TestAMachineThatIsToBePlannedSaysThatItsNodeIsAway(t *testing.T) {
	m := &v1alpha1.Machine{}
	m.Status.Versions, m.Status.Assignment = &v1alpha1.ObservedVersions{}, &v1alpha1.Assignment{}
	for ready, want := range map[bool]string{true: "the host plans and stages", false: "its node is NotReady"} {
		c := upToDate(&scope{machine: m, view: &fleet.Machine{Machine: m, Node: &fleet.Node{Ready: ready}}})
		assert.Contains(t, c.Message, want)
	}
}

// The label of a Node is told of though its Machine reports nothing yet, or nothing is wished for.
func TestARoleThatOnlyTheNodeKnowsOfStallsTheMachine(t *testing.T) {
	for name, seen := range map[string]*v1alpha1.ObservedVersions{"before its agent reports": nil, "with nothing to do": {Kubelet: "v1.36.3"}} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp2"}}
			m.Spec.Roles, m.Status.Versions = []v1alpha1.Role{v1alpha1.RoleWorker}, seen
			n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp2", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
			f, err := fleet.Build(fleet.Objects{Machines: []v1alpha1.Machine{m}, Nodes: []corev1.Node{n}})
			require.NoError(t, err)
			s := &scope{key: types.NamespacedName{Name: "cp2"}, machine: f.Machines[0].Machine, view: f.Machines[0], fleet: f}
			s.wishMet, _, s.difference = upgrade.UpToDate(m.Spec, m.Status)
			s.seeRoles()
			c := stalled(s)
			require.NotNil(t, c)
			assert.Equal(t, upgrade.ReasonRoleMismatch, c.Reason)
			assert.Contains(t, c.Message, "Node cp2 is labelled")
			assert.NotEqual(t, metav1.ConditionTrue, upToDate(s).Status)
		})
	}
}

func TestAKubeletOutsideOfItsSkewIsAConditionOfItsMachine(t *testing.T) {
	api := &v1alpha1.ObservedControlPlane{APIServer: "v1.36.4", ControllerManager: "v1.36.4", Scheduler: "v1.36.4"}
	cp, w := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp"}}, v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	cp.Spec.Roles, cp.Status.Versions = []v1alpha1.Role{v1alpha1.RoleControlPlane}, &v1alpha1.ObservedVersions{Kubelet: "v1.36.4", ControlPlane: api}
	w.Spec.Roles, w.Status.Versions = []v1alpha1.Role{v1alpha1.RoleWorker}, &v1alpha1.ObservedVersions{Kubelet: "v1.37.2"}
	f, err := fleet.Build(fleet.Objects{Machines: []v1alpha1.Machine{cp, w}})
	require.NoError(t, err)
	r := &Reconciler{Board: &board.Board{}, Now: time.Now}
	s := &scope{key: types.NamespacedName{Name: "w"}, machine: f.Find("w").Machine, view: f.Find("w"), fleet: f}
	r.Board.SetSkews("", f.Skews())
	r.tellSkew(s)
	c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSkewViolated)
	require.NotNil(t, c)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Contains(t, c.Message, "newer than the oldest API server v1.36.4")
	_, is := r.Board.Skew(types.NamespacedName{Name: "cp"})
	assert.True(t, is)
	assert.NotContains(t, f.Skews(), "cp")

	restarted := &Reconciler{Board: &board.Board{}, Now: time.Now}
	restarted.tellSkew(s)
	assert.NotNil(t, meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSkewViolated), "nobody has looked yet")
	restarted.Board.SetSkews("", nil)
	restarted.tellSkew(s)
	assert.Nil(t, meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSkewViolated))
}

// What nobody carries out is not passed over in silence by a Machine that is up to date otherwise.
func TestAMachineThatIsUpToDateSaysWhatOfItsSpecNobodyApplies(t *testing.T) {
	m := &v1alpha1.Machine{}
	m.Status.Versions = &v1alpha1.ObservedVersions{}
	s := &scope{machine: m, view: &fleet.Machine{Machine: m}, wishMet: true}
	assert.Equal(t, "what runs is what spec wants", upToDate(s).Message)
	m.Spec.Node = &v1alpha1.NodeSpec{Labels: map[string]string{"rack": "r1"}}
	c := upToDate(s)
	assert.Equal(t, metav1.ConditionTrue, c.Status)
	assert.Contains(t, c.Message, "spec.node is not applied by this version of Refit")
}

func TestAMachineThatComesUnderAnEarlierOnesNameInheritsNothing(t *testing.T) {
	key, now := types.NamespacedName{Namespace: "refit", Name: "e1"}, time.Date(2030, 1, 7, 12, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: "refit", Name: v1alpha1.LedgerName}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(l).Build()
	r := &Reconciler{Client: c, Live: c, Ledger: &ledger.Store{Live: c, Writer: c, Now: metav1.Now}}
	r.unjudged.lasted(key, now)
	r.beats.since(key, now, now)

	_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	later := now.Add(time.Hour)
	assert.Zero(t, r.unjudged.lasted(key, later))
	_, again := r.beats.since(key, later, later)
	assert.False(t, again, "its first renewal comes after none")
}
