package gates_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	worker = v1alpha1.RoleWorker
	plane  = v1alpha1.RoleControlPlane
)

func rolling(edit func(*v1alpha1.RollingUpdate)) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{}}
		edit(d.Spec.Strategy.RollingUpdate)
	}
}

func maxUnavailable(v intstr.IntOrString) func(*v1alpha1.MachineDeployment) {
	return rolling(func(r *v1alpha1.RollingUpdate) { r.MaxUnavailable = &v })
}

func held(m *v1alpha1.Machine) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Message: "The host's owner refuses grants with /etc/refit/hold; remove the file to go on: inventory"})
}

func zoneByZone(d *v1alpha1.MachineDeployment) {
	rolling(func(r *v1alpha1.RollingUpdate) { r.TopologyKey = "zone" })(d)
}

func maxOf(n int32) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = at(n) }
}

func unknownFor(d time.Duration) Edit {
	return func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, *ago(d)
	}
}

func done(m *v1alpha1.Machine, _ *corev1.Node, _ *v1alpha1.LedgerSpec) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionTrue, ObservedGeneration: m.Generation,
	})
}

func TestADrainThatCanNeverSucceedIsNotBegunAndHoldsUpNobody(t *testing.T) {
	impossible := &fleet.Forecast{Status: metav1.ConditionFalse, Reason: "PDBOverlap", Message: "shop/a has two budgets"}
	build := func(edits ...Edit) *fleet.Fleet {
		return New().Machine("cp1", "", plane).Deployment("w", zoneByZone).Machine("w1", "w", worker, append(edits, Zone("a"))...).Machine("w2", "w", worker, Zone("b")).Build()
	}
	f := build()
	f.Find("w1").Forecast = impossible
	v := gates.Check(f, f.Find("w1"))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonDrainImpossible, v.Reason)
	assert.Contains(t, v.Text(), "(PDBOverlap): shop/a has two budgets")
	assert.Nil(t, gates.Check(f, f.Find("w2")), "the next domain need not wait for it")

	f = build()
	assert.NotNil(t, gates.Check(f, f.Find("w2")), "it waits for a domain that can go on")
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown} {
		f.Find("w1").Forecast = &fleet.Forecast{Status: status}
		assert.Nil(t, gates.Check(f, f.Find("w1")), status)
	}
	f = build(Plans(v1alpha1.DisruptionRestart))
	f.Find("w1").Forecast = impossible
	assert.Nil(t, gates.Check(f, f.Find("w1")), "a plan without a drain is not held by one")
}

func TestAHoldIsToldOnce(t *testing.T) {
	f := New().Machine("cp1", "", plane).Machine("w1", "", worker, Of(held)).Build()
	v := gates.Check(f, f.Find("w1"))
	require.NotNil(t, v)
	assert.Equal(t, 1, strings.Count(v.Text(), "/etc/refit/hold"), v.Message)
}

func TestAPauseSaysWhichCertificatesLapseMeanwhile(t *testing.T) {
	lapsing := func(m *v1alpha1.Machine) {
		m.Spec.Paused = true
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCertificatesExpiring, Status: metav1.ConditionTrue, Message: "apiserver.crt expires soon"})
	}
	f := New().Machine("w1", "", worker, Of(lapsing)).Machine("w2", "", worker, Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true })).Build()
	assert.Contains(t, gates.Check(f, f.Find("w1")).Message, "; meanwhile apiserver.crt expires soon")
	assert.NotContains(t, gates.Check(f, f.Find("w2")).Message, "meanwhile")
}

func locked(m *v1alpha1.Machine) {
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: "PackageLockHeld", Message: "waiting for process 2448 (unattended-upgr)",
	})
}

func TestEachGateVetoesWhatItIsForAndNothingElse(t *testing.T) {
	base := func() *Builder { return New().Machine("cp1", "", plane) }
	for name, tc := range map[string]struct {
		fleet  *Builder
		reason string // of w1; "" passes
		says   []string
	}{
		"a machine alone in its pool passes":    {fleet: base().Deployment("w").Machine("w1", "w", worker)},
		"a machine without a deployment passes": {fleet: base().Machine("w1", "", worker)},
		"the stop switch halts everything": {
			fleet: func() *Builder {
				b := base().Deployment("w").Machine("w1", "w", worker)
				b.Objects.Ledger.Stopped = true
				return b
			}(),
			reason: gates.ReasonStopped, says: []string{"spec.stopped", "Ledger"}},
		"a paused machine": {fleet: base().Machine("w1", "", worker, Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true })), reason: gates.ReasonPaused},
		"a paused deployment": {
			fleet:  base().Deployment("w", func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true }).Machine("w1", "w", worker),
			reason: gates.ReasonPaused, says: []string{"MachineDeployment w"}},
		"two deployments": {
			fleet:  base().Deployment("a", func(d *v1alpha1.MachineDeployment) { d.Spec.Selector.MatchLabels["pool"] = "w" }).Deployment("w").Machine("w1", "w", worker),
			reason: gates.ReasonDeploymentConflict, says: []string{"a, w"}},
		"an empty selector claims nothing": {
			fleet: base().Deployment("a", func(d *v1alpha1.MachineDeployment) { d.Spec.Selector = metav1.LabelSelector{} }).Deployment("w").Machine("w1", "w", worker)},
		"a strategy that nobody knows": {
			fleet:  base().Deployment("w", func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: "OnDelete"} }).Machine("w1", "w", worker),
			reason: gates.ReasonStrategyNotSupported, says: []string{"type OnDelete"}},
		"the first domain by name begins": {
			fleet: base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("a")).Machine("w2", "w", worker, Zone("b"))},
		"and the next one waits until it is finished": {
			fleet:  base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a")),
			reason: gates.ReasonDomainBusy, says: []string{"zone=a", "MachineDeployment w", "w2"}},
		"a domain with a slot goes before one with an earlier name": {
			fleet:  base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("a")).Machine("w2", "w", worker, Zone("b"), InSlot(v1alpha1.DisruptionDrain)),
			reason: gates.ReasonDomainBusy, says: []string{"zone=b"}},
		"a domain that was begun goes before one with an earlier name": {
			fleet: base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("a")).
				Machine("w2", "w", worker, Zone("b"), done).Machine("w3", "w", worker, Zone("b")),
			reason: gates.ReasonDomainBusy, says: []string{"zone=b", "w3"}},
		"a domain is finished when the rest is done": {
			fleet: base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a"), done)},
		"a machine that has just gone away still has its turn": {
			fleet: base().Deployment("w", zoneByZone, maxOf(2)).Machine("w1", "w", worker, Zone("b")).
				Machine("w2", "w", worker, Zone("a"), unknownFor(4*time.Minute)),
			reason: gates.ReasonDomainBusy, says: []string{"w2"}},
		"or out of sight": {
			fleet: base().Deployment("w", zoneByZone, maxOf(2)).Machine("w1", "w", worker, Zone("b")).
				Machine("w2", "w", worker, Zone("a"), unknownFor(5*time.Minute))},
		"or paused": {
			fleet: base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("b")).
				Machine("w2", "w", worker, Zone("a"), Of(func(m *v1alpha1.Machine) { m.Spec.Paused = true }))},
		"or out of service": {
			fleet: base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("b")).
				Machine("w2", "w", worker, Zone("a"), Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService }))},
		"or failed": {
			fleet: base().Deployment("w", zoneByZone, func(d *v1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.FailureThreshold, d.Spec.Strategy.RollingUpdate.MaxUnavailable = at(2), at(2)
			}).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a"), Failed)},
		"or cordoned by someone else": {
			fleet: base().Deployment("w", zoneByZone, func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = at(2) }).
				Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a"), Cordoned)},
		"unless its cordoned machines are asked for": {
			fleet: base().Deployment("w", zoneByZone, func(d *v1alpha1.MachineDeployment) {
				d.Spec.Strategy.RollingUpdate.CordonedMachines, d.Spec.Strategy.RollingUpdate.MaxUnavailable = "Include", at(2)
			}).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker, Zone("a"), Cordoned),
			reason: gates.ReasonDomainBusy, says: []string{"zone=a"}},
		"a machine that is down goes wherever it is": {
			fleet: base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("b"), NotReady).Machine("w2", "w", worker, Zone("a"))},
		"machines without the label are a domain": {
			fleet:  base().Deployment("w", zoneByZone).Machine("w1", "w", worker, Zone("b")).Machine("w2", "w", worker),
			reason: gates.ReasonDomainBusy, says: []string{"no label zone"}},
		"maxSurge 0 is no surge": {fleet: base().Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) { r.MaxSurge = at(0) })).Machine("w1", "w", worker)},
		"a held host":            {fleet: base().Machine("w1", "", worker, Of(held)), reason: gates.ReasonHeld, says: []string{"/etc/refit/hold", "inventory"}},
		"a host whose packages another process works on": {fleet: base().Machine("w1", "", worker, Of(locked)), reason: "PackageLockHeld", says: []string{"process 2448 (unattended-upgr)"}},
		"a cordon of someone else":                       {fleet: base().Deployment("w").Machine("w1", "w", worker, Cordoned).Machine("w2", "w", worker), reason: gates.ReasonForeignCordon, says: []string{"MachineDeployment w", "Include"}},
		"a cordoned machine that is asked for": {
			fleet: base().Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) { r.CordonedMachines = "Include" })).Machine("w1", "w", worker, Cordoned).Machine("w2", "w", worker)},
		"a blocked drain waits for its time": {
			fleet:  base().Machine("w1", "", worker, Of(func(m *v1alpha1.Machine) { m.Status.RolloutFailure = drainBlocked(time.Minute) })),
			reason: gates.ReasonRetryLater, says: []string{"EvictionBlocked: ", "attempt 2", "12:01:00"}},
		"and passes when it has come": {fleet: base().Machine("w1", "", worker, Of(func(m *v1alpha1.Machine) { m.Status.RolloutFailure = drainBlocked(0) }))},
		"one failure pauses the pool": {
			fleet:  base().Deployment("w", maxUnavailable(intstr.FromInt32(3))).Machine("w1", "w", worker).Machine("w2", "w", worker, Failed),
			reason: gates.ReasonFailureThreshold, says: []string{"w2 (VerifyFailed)", "refit.dev/retry"}},
		"a failure in another pool does not": {fleet: base().Deployment("w").Deployment("x").Machine("w1", "w", worker).Machine("x1", "x", worker, Failed)},
		"a higher threshold lets go on": {
			fleet: base().Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) { r.FailureThreshold, r.MaxUnavailable = at(2), at(2) })).
				Machine("w1", "w", worker).Machine("w2", "w", worker, Failed)},
		"a kubelet newer than the oldest API server": {
			fleet:  base().Machine("w1", "", worker, Of(func(m *v1alpha1.Machine) { m.Status.Assignment.Target.Kubelet = "v1.38.0" })),
			reason: "SkewViolated", says: []string{"v1.38.0", "v1.37.2"}},
		"a worker while the control plane is worked on": {
			fleet:  New().Machine("cp1", "", plane, InSlot(v1alpha1.DisruptionDrain)).Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker),
			reason: gates.ReasonControlPlaneBusy, says: []string{"cp1"}},
		"no other node to take the pods": {
			fleet: New().Machine("cp1", "", plane, Cordoned).Machine("w1", "", worker), reason: gates.ReasonNoCapacity, says: []string{"singleNode"}},
		"no other node that the pods tolerate": {
			fleet:  New().Machine("cp1", "", plane, Tainted("node-role.kubernetes.io/control-plane")).Machine("w1", "", worker),
			reason: gates.ReasonNoCapacity, says: []string{"without taints of its own"}},
		"another node with the same taint": {
			fleet: New().Machine("cp1", "", plane, Cordoned).Deployment("w").Machine("w1", "w", worker, Tainted("gpu")).Machine("w2", "w", worker, Tainted("gpu"))},
		"unless the policy says in place": {
			fleet: New().Machine("cp1", "cp", plane, Cordoned).Deployment("w").Machine("w1", "w", worker, Of(func(m *v1alpha1.Machine) { m.Spec.Drain = &v1alpha1.DrainSpec{SingleNode: "InPlace"} }))},
		"a slot uses the budget": {
			fleet:  base().Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)),
			reason: gates.ReasonBudgetExhausted, says: []string{"1 of 2", "w2 being upgraded"}},
		"so does a node that is not ready": {fleet: base().Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker, NotReady), reason: gates.ReasonBudgetExhausted, says: []string{"w2 NotReady"}},
		"and a cordon of someone else":     {fleet: base().Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker, Cordoned), reason: gates.ReasonBudgetExhausted, says: []string{"cordoned by someone else"}},
		"a machine out of service does not": {
			fleet: base().Deployment("w").Machine("w1", "w", worker).Machine("w3", "w", worker).
				Machine("w2", "w", worker, NotReady, Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService }))},
		"a restart elsewhere does not use the budget of a drain": {
			fleet: base().Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionRestart))},
		"a machine that is down may be worked on": {fleet: base().Deployment("w").Machine("w1", "w", worker, NotReady).Machine("w2", "w", worker)},
		"though another one is down as well":      {fleet: base().Deployment("w").Machine("w1", "w", worker, NotReady).Machine("w2", "w", worker, NotReady)},
		"but not two of them at a time": {
			fleet:  base().Deployment("w").Machine("w1", "w", worker, NotReady).Machine("w2", "w", worker, NotReady, InSlot(v1alpha1.DisruptionDrain)),
			reason: gates.ReasonBudgetExhausted},
		"restarts have a bound of their own": {
			fleet:  base().Deployment("w").Machine("w1", "w", worker, Plans(v1alpha1.DisruptionRestart)).Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionRestart)),
			reason: gates.ReasonInFlightExhausted, says: []string{"1 machine at a time"}},
		"a budget over two pools": {
			fleet: base().Deployment("w", maxUnavailable(intstr.FromInt32(3))).Budget("all", "w", func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MinAvailable = at(2) }).
				Machine("w1", "w", worker).Machine("w2", "w", worker, NotReady).Machine("w3", "w", worker),
			reason: gates.ReasonBudgetExhausted, says: []string{"MachineDisruptionBudget all", "w2 NotReady"}},
		"a budget that keeps to one domain": {
			fleet: base().Deployment("w", maxUnavailable(intstr.FromInt32(3))).
				Budget("zones", "w", func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MaxUnavailable, s.TopologyKey = at(3), "zone" }).
				Machine("w1", "w", worker, Zone("a")).Machine("w2", "w", worker, Zone("b"), InSlot(v1alpha1.DisruptionDrain)),
			reason: gates.ReasonBudgetExhausted, says: []string{"another zone"}},
		"and lets work go on in it": {
			fleet: base().Deployment("w", maxUnavailable(intstr.FromInt32(3))).
				Budget("zones", "w", func(s *v1alpha1.MachineDisruptionBudgetSpec) { s.MaxUnavailable, s.TopologyKey = at(3), "zone" }).
				Machine("w1", "w", worker, Zone("a")).Machine("w2", "w", worker, Zone("a"), InSlot(v1alpha1.DisruptionDrain))},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := gates.Check(f, f.Find("w1"))
			if tc.reason == "" {
				require.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason)
			for _, text := range tc.says {
				assert.Contains(t, v.Text(), text)
			}
		})
	}
}

func at(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }

func drainBlocked(in time.Duration) *v1alpha1.RolloutFailure {
	next := metav1.NewTime(Now.Add(in))
	return &v1alpha1.RolloutFailure{Class: fleet.ClassDrainBlocked, Failure: v1alpha1.Failure{Reason: "EvictionBlocked", Message: "app/x", Attempts: 2, NextRetryTime: &next}}
}

// Half of eleven is five, whatever the events do: the budget is never exceeded and always used up.
func TestABudgetIsUsedUpAndNeverExceeded(t *testing.T) {
	for name, tc := range map[string]struct {
		machines int
		max      intstr.IntOrString
		want     int
	}{
		"half of eleven":      {11, intstr.FromString("50%"), 5},
		"a tenth of three":    {3, intstr.FromString("10%"), 1},
		"all of four":         {4, intstr.FromString("100%"), 4},
		"two of six":          {6, intstr.FromInt32(2), 2},
		"none, by the number": {6, intstr.FromInt32(0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := New().Machine("cp1", "", plane).Deployment("w", maxUnavailable(tc.max))
			for i := range tc.machines {
				b.Machine(fmt.Sprintf("w%02d", i), "w", worker)
			}
			f := b.Build()
			granted := 0
			for _, m := range f.Machines {
				if m.Name != "cp1" && gates.Check(f, m) == nil {
					m.Hold(&v1alpha1.Slot{Machine: m.Name, Disruption: v1alpha1.DisruptionDrain})
					granted++
				}
			}
			assert.Equal(t, tc.want, granted)
		})
	}
}

// towards134 is a control plane with etcd that has a plan to go to v1.34.
func towards134(etcd string) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.Versions = &v1alpha1.ObservedVersions{
			Kubelet: "v1.33.9", Etcd: etcd, ControlPlane: &v1alpha1.ObservedControlPlane{APIServer: "v1.33.9"},
		}
		m.Status.Etcd = &v1alpha1.ObservedEtcd{Member: m.Name, Members: 2, Healthy: 2, Quorum: true}
		m.Status.Assignment.Target.Versions = v1alpha1.Versions{ControlPlane: "v1.34.9"}
	})
}

func TestControlPlaneAndEtcdMembersGoOneAtATime(t *testing.T) {
	wide := maxUnavailable(intstr.FromInt32(3))
	for name, tc := range map[string]struct {
		fleet  *Builder
		reason string
	}{
		"an etcd too old on a peer":    {New().Machine("cp1", "", plane, towards134("3.5.24")).Machine("cp2", "", plane, towards134("3.5.21")), upgrade.FindingEtcdTooOld},
		"no etcd that is too old":      {New().Machine("cp1", "", plane, towards134("3.5.24")).Machine("cp2", "", plane, towards134("3.5.26")), ""},
		"all well":                     {New().Deployment("cp", wide).Machine("cp1", "cp", plane).Machine("cp2", "cp", plane), ""},
		"another one in a slot":        {New().Deployment("cp", wide).Machine("cp1", "cp", plane).Machine("cp2", "cp", plane, InSlot(v1alpha1.DisruptionRestart)), gates.ReasonControlPlaneBusy},
		"an etcd host in a slot":       {New().Deployment("cp", wide).Machine("cp1", "cp", plane).Machine("e1", "cp", v1alpha1.RoleEtcd, InSlot(v1alpha1.DisruptionNone)), gates.ReasonControlPlaneBusy},
		"another one not ready":        {New().Deployment("cp", wide).Machine("cp1", "cp", plane).Machine("cp2", "cp", plane, NotReady), gates.ReasonControlPlaneUnavailable},
		"another one cordoned":         {New().Deployment("cp", wide).Machine("cp1", "cp", plane).Machine("cp2", "cp", plane, Cordoned).Machine("w1", "", worker), gates.ReasonControlPlaneUnavailable},
		"workers in slots do not hold": {New().Deployment("cp", wide).Machine("cp1", "cp", plane).Machine("w1", "", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("w2", "", worker), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := gates.Check(f, f.Find("cp1"))
			if tc.reason == "" {
				assert.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason)
		})
	}
}

func TestSlotsOfOneWalkStayInOneDomain(t *testing.T) {
	b := New().Machine("cp1", "", plane).Deployment("w", zoneByZone, func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = at(6) })
	for i := range 6 {
		b.Machine(fmt.Sprintf("w%d", i), "w", worker, Zone([]string{"b", "a", "c"}[i%3]))
	}
	f := b.Build()
	var granted []string
	for _, m := range f.Machines {
		if m.Name != "cp1" && gates.Check(f, m) == nil {
			m.Hold(&v1alpha1.Slot{Machine: m.Name, Disruption: v1alpha1.DisruptionDrain})
			granted = append(granted, m.Name)
		}
	}
	assert.Equal(t, []string{"w1", "w4"}, granted)
}

func TestWhatAPersonDecidedIsHeardFirst(t *testing.T) {
	names := make([]string, 0, len(gates.All))
	for _, g := range gates.All {
		names = append(names, g.Name)
	}
	assert.Equal(t, []string{
		"stopped",
		"paused",
		"lost-pool",
		"conflict",
		"strategy",
		"held",
		"manual",
		"window",
		"cordoned",
		"retry",
		"forecast",
		"failure-threshold",
		"degraded",
		"canary",
		"control-plane-first",
		"control-plane", "etcd",
		"topology",
		"capacity",
		"standby",
		"budget",
		"disruption-budgets",
		"checks",
	}, names)
}

func TestOnlyAPersonsWordTakesASlotBack(t *testing.T) {
	b := New().Machine("cp1", "", plane).Deployment("w").
		Machine("w1", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("w2", "w", worker, NotReady, Failed)
	f := b.Build()
	assert.Nil(t, gates.Withdrawn(f, f.Find("w1")), "a budget that is exceeded meanwhile does not undo a drain")
	b.Objects.Machines[1].Spec.Paused = true
	f = b.Build()
	require.NotNil(t, gates.Withdrawn(f, f.Find("w1")))
}
