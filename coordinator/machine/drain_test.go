package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/pkg/drain"
)

func TestADrainThatTimeDoesNotHelpIsNotTriedAgainEveryMinute(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	passing := &drain.Blocked{Reason: drain.ReasonEvictionBlocked}
	lasting := &drain.Blocked{Reason: drain.ReasonEvictionBlocked, Permanent: true}
	refused := &drain.Blocked{Reason: drain.ReasonPDBOverlap, Permanent: true}
	after := func(before *v1alpha1.RolloutFailure, b *drain.Blocked) time.Duration {
		return nextDrainFailure(before, b, now).NextRetryTime.Sub(now)
	}
	assert.Equal(t, time.Minute, after(nil, passing))
	assert.Equal(t, 2*time.Minute, after(nextDrainFailure(nil, passing, now), passing))
	assert.Equal(t, 30*time.Minute, after(nil, lasting))
	assert.Equal(t, 30*time.Minute, after(nil, &drain.Blocked{Reason: drain.ReasonPodsComeBack, Permanent: true}))
	assert.Equal(t, time.Minute, after(nil, refused), "it evicts nobody, and costs nothing")
}

func TestHowANodeIsDrainedFollowsWhetherItsPodsHaveAnotherPlace(t *testing.T) {
	inPlace := fleettest.Of(func(m *v1alpha1.Machine) { m.Spec.Drain = &v1alpha1.DrainSpec{SingleNode: "InPlace"} })
	for name, tc := range map[string]struct {
		disruption v1alpha1.Disruption
		others     []fleettest.Edit // of the only other node
		edits      []fleettest.Edit
		volumes    bool
		lb         drain.LoadBalancers
		ownStay    bool
	}{
		"a drain keeps its volumes":            {disruption: v1alpha1.DisruptionDrain, others: []fleettest.Edit{}},
		"a reboot waits for them":              {disruption: v1alpha1.DisruptionReboot, others: []fleettest.Edit{}, volumes: true},
		"in place, but there is another place": {disruption: v1alpha1.DisruptionReboot, others: []fleettest.Edit{}, edits: []fleettest.Edit{inPlace}, volumes: true},
		"in place on the only node":            {disruption: v1alpha1.DisruptionReboot, edits: []fleettest.Edit{inPlace}, lb: drain.KeepInLoadBalancers, ownStay: true},
		"in place, the other one is tainted": {
			disruption: v1alpha1.DisruptionReboot, others: []fleettest.Edit{fleettest.Tainted("node-role.kubernetes.io/control-plane")},
			edits: []fleettest.Edit{inPlace}, lb: drain.KeepInLoadBalancers, ownStay: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			world := fleettest.New().Machine("w1", "", v1alpha1.RoleWorker, append(tc.edits, fleettest.InSlot(tc.disruption))...)
			if tc.others != nil {
				world.Machine("w2", "", v1alpha1.RoleWorker, tc.others...)
			}
			nodes := fake.NewClientBuilder().WithLists(&corev1.NodeList{Items: world.Objects.Nodes}).Build()
			view := world.Build().Find("w1")
			r := &Reconciler{Nodes: nodes, OwnPods: func(*corev1.Pod) bool { return true }}
			opts, err := r.drainOptions(t.Context(), &scope{machine: view.Machine, view: view})
			require.NoError(t, err)
			assert.Equal(t, tc.volumes, opts.AwaitVolumes)
			assert.Equal(t, tc.lb, opts.LoadBalancers)
			assert.Equal(t, tc.ownStay, opts.IsOwnPod != nil && opts.IsOwnPod(nil))
		})
	}
}

func TestANodeWithoutASlotIsFreedOfWhateverCarriesOurMark(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"cordon and exclusion":            {v1alpha1.AnnotationCordonedBy: "g1", v1alpha1.AnnotationExcludedBy: "g1"},
		"a found cordon and an exclusion": {v1alpha1.AnnotationFoundCordonedBy: "g1", v1alpha1.AnnotationExcludedBy: "g2"},
		"exclusion alone":                 {v1alpha1.AnnotationExcludedBy: "g1"},
		"of two operations":               {v1alpha1.AnnotationCordonedBy: "g2", v1alpha1.AnnotationExcludedBy: "g1"},
	} {
		t.Run(name, func(t *testing.T) {
			marked := func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
				n.Annotations, n.Labels = annotations, map[string]string{corev1.LabelNodeExcludeBalancers: ""}
				n.Spec.Unschedulable = annotations[v1alpha1.AnnotationCordonedBy] != ""
			}
			world := fleettest.New().Machine("w1", "", v1alpha1.RoleWorker, marked)
			kube := kubefake.NewClientset(&world.Objects.Nodes[0])
			view := world.Build().Find("w1")
			_, err := (&Reconciler{Workload: kube}).unmark(t.Context(), &scope{machine: view.Machine, view: view})
			require.NoError(t, err)
			n, err := kube.CoreV1().Nodes().Get(t.Context(), "w1", metav1.GetOptions{})
			require.NoError(t, err)
			assert.False(t, n.Spec.Unschedulable)
			assert.Empty(t, n.Labels)
			assert.Empty(t, n.Annotations)
		})
	}
}

func TestWhoeverTakesACordonBackIsGivenWay(t *testing.T) {
	for name, tc := range map[string]struct {
		mark, owner   string
		unschedulable bool
		taken         bool
	}{
		"ours":                     {mark: v1alpha1.AnnotationCordonedBy, taken: true},
		"one that was there":       {mark: v1alpha1.AnnotationFoundCordonedBy, taken: true},
		"ours, with its marker":    {mark: v1alpha1.AnnotationExcludedBy, taken: true},
		"one that is there still":  {mark: v1alpha1.AnnotationFoundCordonedBy, unschedulable: true},
		"one that another found":   {mark: v1alpha1.AnnotationFoundCordonedBy, owner: "g0"},
		"none, and none was found": {mark: "example.com/other"},
	} {
		t.Run(name, func(t *testing.T) {
			world := fleettest.New().Machine("w1", "", v1alpha1.RoleWorker, fleettest.InSlot(v1alpha1.DisruptionDrain), func(_ *v1alpha1.Machine, n *corev1.Node, l *v1alpha1.LedgerSpec) {
				owner := tc.owner
				if owner == "" {
					owner = l.Slots[0].GrantID
				}
				n.Annotations = map[string]string{tc.mark: owner}
				n.Spec.Unschedulable = tc.unschedulable
			})
			view := world.Build().Find("w1")
			assert.Equal(t, tc.taken, uncordoned(&scope{machine: view.Machine, view: view}))
		})
	}
}

func TestABlockedDrainRemembersWhenItWasFirst(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	blocked := &drain.Blocked{Reason: "EvictionBlocked"}
	first := nextDrainFailure(nil, blocked, now)
	third := nextDrainFailure(nextDrainFailure(first, blocked, now.Add(time.Hour)), blocked, now.Add(2*time.Hour))
	assert.Equal(t, now, third.FirstTime.Time)
	assert.EqualValues(t, 3, third.Attempts)

	other := &v1alpha1.RolloutFailure{Class: fleet.ClassUnreachable, FirstTime: first.FirstTime}
	assert.Equal(t, now.Add(time.Hour), nextDrainFailure(other, blocked, now.Add(time.Hour)).FirstTime.Time)
}
