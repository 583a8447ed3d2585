package standby_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/standby"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const worker = v1alpha1.RoleWorker

// pool serves with so many machines; a surge of 0 is none.
func pool(replicas int32, surge int32) *Builder {
	return New().Deployment("w", func(d *v1alpha1.MachineDeployment) {
		if replicas >= 0 {
			d.Spec.Replicas = &replicas
		}
		max, none := intstr.FromInt32(surge), intstr.FromInt32(0)
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxSurge: &max}}
		if surge > 0 {
			d.Spec.Strategy.RollingUpdate.MaxUnavailable = &none
		}
	})
}

func standsBy(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
	n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordonedBy] = true, v1alpha1.CordonStandby
}

func takenToWork(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
	n.Annotations[v1alpha1.AnnotationCordonedBy] = v1alpha1.CordonStandby
}

func annotated(key string) Edit {
	return Of(func(m *v1alpha1.Machine) { m.Annotations = map[string]string{key: ""} })
}

func notReadyFor(d time.Duration) Edit {
	return func(m *v1alpha1.Machine, n *corev1.Node, l *v1alpha1.LedgerSpec) {
		NotReady(m, n, l)
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(Now.Add(-d))
	}
}

func slot(state v1alpha1.SlotState, edits ...func(*v1alpha1.Slot)) Edit {
	return func(m *v1alpha1.Machine, n *corev1.Node, l *v1alpha1.LedgerSpec) {
		s := v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), GrantID: "g-" + m.Name, PlanHash: "hash", Disruption: v1alpha1.DisruptionDrain, State: state}
		for _, e := range edits {
			e(&s)
		}
		n.Spec.Unschedulable, n.Annotations[v1alpha1.AnnotationCordonedBy] = true, s.GrantID
		l.Slots = append(l.Slots, s)
	}
}

var (
	done     = Of(func(m *v1alpha1.Machine) { judge(m, metav1.ConditionTrue) })
	outdated = Of(func(m *v1alpha1.Machine) { judge(m, metav1.ConditionFalse) })
	wished   = Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityStandby })
	gone     = Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService })
)

func judge(m *v1alpha1.Machine, as metav1.ConditionStatus) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionUpToDate, Status: as, ObservedGeneration: m.Generation})
}

func names(set map[string]bool) []string {
	return slices.AppendSeq([]string{}, maps.Keys(set))
}

func TestTheSameMachinesStandByWhoeverAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		fleet       *Builder
		waiting     int
		always, now []string
	}{
		"all serve where nothing else is said": {fleet: pool(-1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done)},
		"who wishes it for itself":             {fleet: pool(-1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, wished), always: []string{"w2"}, now: []string{"w2"}},
		"what replicas leave over":             {fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done), always: []string{"w1"}, now: []string{"w1"}},
		"who stands by goes on":                {fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, standsBy), always: []string{"w2"}, now: []string{"w2"}},
		"who wishes it goes before": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done, wished).Machine("w2", "w", worker, done, standsBy), always: []string{"w1"}, now: []string{"w1"}},
		"who is named goes before": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done, annotated("refit.dev/standby-next")).Machine("w2", "w", worker, done, standsBy), always: []string{"w1"}, now: []string{"w1"}},
		"and so by Cluster API": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, annotated("cluster.x-k8s.io/delete-machine")), always: []string{"w2"}, now: []string{"w2"}},
		"but not before a wish": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done, annotated("refit.dev/standby-next")).Machine("w2", "w", worker, done, wished), always: []string{"w2"}, now: []string{"w2"}},
		"who is empty already": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, slot(v1alpha1.SlotVerifying)), always: []string{"w2"}, now: []string{"w2"}},
		"but not who is still being drained": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, slot(v1alpha1.SlotReserved)), always: []string{"w1"}, now: []string{"w1"}},
		"who is being emptied for it goes on": {
			fleet:  pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, slot(v1alpha1.SlotReserved, func(s *v1alpha1.Slot) { s.DrainsOnly = true })),
			always: []string{"w2"}, now: []string{"w2"}},
		"more wishes than replicas leave over": {
			fleet:  pool(2, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, wished).Machine("w3", "w", worker, done, wished),
			always: []string{"w2", "w3"}, now: []string{"w2", "w3"}},
		"a machine out of service is not there": {fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, gone)},
		"a node that is away for a moment does not bring the standby to work": {
			fleet: pool(1, 0).Machine("w1", "w", worker, done, notReadyFor(4*time.Minute)).Machine("w2", "w", worker, done, standsBy), always: []string{"w2"}, now: []string{"w2"}},
		"one that stays away does":                               {fleet: pool(1, 0).Machine("w1", "w", worker, done, notReadyFor(6*time.Minute)).Machine("w2", "w", worker, done, standsBy)},
		"so does a cordon of someone else":                       {fleet: pool(1, 0).Machine("w1", "w", worker, done, Cordoned).Machine("w2", "w", worker, done, standsBy)},
		"a standby that a person put to work is not made up for": {fleet: pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, takenToWork)},
		"a control plane stands by only where it wishes so": {
			fleet: pool(1, 0).Machine("c1", "w", v1alpha1.RoleControlPlane, done).Machine("w2", "w", worker, done), always: []string{"w2"}, now: []string{"w2"}},
		"a surge while machines wait for a drain": {
			fleet: pool(2, 1).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, outdated).Machine("w3", "w", worker, done, standsBy), waiting: 2, always: []string{"w3"}},
		"no surge while none waits": {
			fleet: pool(2, 1).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, outdated).Machine("w3", "w", worker, done, standsBy), always: []string{"w3"}, now: []string{"w3"}},
		"a surge while one is worked on": {
			fleet: pool(2, 1).Machine("w1", "w", worker, slot(v1alpha1.SlotAccepted)).Machine("w2", "w", worker, done).Machine("w3", "w", worker, done), always: []string{"w1"}},
		"not for the work on a standby": {
			fleet: pool(2, 1).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done).
				Machine("w3", "w", worker, outdated, slot(v1alpha1.SlotAccepted, func(s *v1alpha1.Slot) { s.StoodBy = true })), always: []string{"w3"}, now: []string{"w3"}},
		"the last one to be drained stays empty": {
			fleet: pool(2, 1).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done).Machine("w3", "w", worker, done, slot(v1alpha1.SlotVerifying)), always: []string{"w3"}, now: []string{"w3"}},
		"no more than maxSurge": {
			fleet: pool(1, 1).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, done, standsBy).Machine("w3", "w", worker, done, standsBy), waiting: 1,
			always: []string{"w2", "w3"}, now: []string{"w2"}},
		"the one that is up to date": {
			fleet: pool(1, 1).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, done, standsBy).Machine("w3", "w", worker, outdated, standsBy), waiting: 1,
			always: []string{"w2", "w3"}, now: []string{"w3"}},
		"and not one whose upgrade waits for a person": {
			fleet: pool(1, 1).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, done, standsBy).
				Machine("w3", "w", worker, outdated, standsBy, wished, Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true })), waiting: 1, always: []string{"w2", "w3"}, now: []string{"w3"}},
		"a failed standby is no standby": {
			fleet: pool(1, 1).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, done, standsBy).Machine("w3", "w", worker, outdated, standsBy, Failed), waiting: 1, always: []string{"w2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			c := standby.Choose(f.Pools["w"], tc.waiting, f.Now)
			assert.ElementsMatch(t, tc.always, names(c.Always), "always")
			assert.ElementsMatch(t, tc.now, names(c.Now), "now")
			slices.Reverse(f.Pools["w"].Machines)
			assert.Equal(t, c, standby.Choose(f.Pools["w"], tc.waiting, f.Now), "in any order")
		})
	}
}

func TestTheCheapestMachineToEmptyStandsBy(t *testing.T) {
	f := pool(2, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done).Machine("w3", "w", worker, done).Build()
	for name, n := range map[string]int{"w1": 7, "w2": 2} {
		f.Find(name).Pods = &n
	}
	assert.Equal(t, map[string]bool{"w2": true}, standby.Choose(f.Pools["w"], 0, f.Now).Now)
}

func TestAStandbyIsPutToWorkForARolloutOnlyWhenItIsUpToDate(t *testing.T) {
	b := func(edits ...Edit) *fleet.Fleet {
		return pool(2, 1).Machine("cp1", "", v1alpha1.RoleControlPlane).Machine("w1", "w", worker, outdated).Machine("w2", "w", worker, outdated).
			Machine("w3", "w", worker, append(edits, standsBy)...).Build()
	}
	assert.True(t, standby.Roles(b(outdated))["w3"].Standby)
	assert.False(t, standby.Roles(b(done))["w3"].Standby)
	f := b(outdated)
	*f.Pools["w"].Deployment.Spec.Replicas = 3
	assert.False(t, standby.Roles(f)["w3"].Standby, "where it is to serve anyway it need not wait")
}

func TestARoleIsOfTheSlotThatItWasDecidedOn(t *testing.T) {
	f := pool(1, 0).Machine("w1", "w", worker, done).Machine("w2", "w", worker, done, slot(v1alpha1.SlotVerifying)).Build()
	roles := standby.Roles(f)
	assert.Equal(t, standby.Role{Standby: true, Slot: "g-w2/Verifying", UpToDate: true}, roles["w2"])
	assert.Equal(t, standby.Role{UpToDate: true}, roles["w1"])
	assert.Empty(t, standby.Roles(New().Deployment("w").Machine("w1", "w", worker).Build()), "nobody asks")
}

func TestAServingMachineIsEmptiedOnlyWhereEnoughOthersServe(t *testing.T) {
	move := func(f *fleet.Fleet) []string {
		out := []string{}
		for _, m := range standby.Moves(f) {
			out = append(out, m.Name)
		}
		return out
	}
	two := func(replicas int32, edits ...Edit) *Builder {
		return pool(replicas, 0).Machine("w1", "w", worker, append(edits, done, annotated("refit.dev/standby-next"))...).Machine("w2", "w", worker, done)
	}
	f := two(1).Build()
	require.Equal(t, []string{"w1"}, move(f))
	f.Find("w1").Hold(&v1alpha1.Slot{Machine: "w1", Disruption: v1alpha1.DisruptionDrain, State: v1alpha1.SlotReserved})
	assert.Empty(t, move(f), "once")
	assert.Empty(t, move(two(2).Build()))
	f = two(1).Machine("c1", "", v1alpha1.RoleControlPlane, InSlot(v1alpha1.DisruptionRestart)).Build()
	assert.Empty(t, move(f), "not while the control plane is worked on")
	b := two(1)
	b.Objects.Ledger.Stopped = true
	assert.Empty(t, move(b.Build()), "not past the stop switch")
	b = two(1)
	b.Objects.Deployments[0].Spec.Paused = true
	assert.Empty(t, move(b.Build()), "not in a pause")
	assert.Empty(t, move(pool(0, 0).Machine("w1", "w", worker, done).Build()), "its pods would have no place")
	assert.Empty(t, move(pool(2, 1).Machine("w1", "w", worker, done, wished).Machine("w2", "w", worker, done, NotReady).Machine("w3", "w", worker, done).Build()),
		"one away and one on standby would be one too few")
}
