// Package fleettest builds fleets for tests.
package fleettest

import (
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Now is the time at which every fleet is read.
var Now = time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)

// Builder collects the objects of a fleet.
type Builder struct{ Objects fleet.Objects }

// New is an empty fleet.
func New() *Builder { return &Builder{fleet.Objects{Now: Now}} }

// Edit changes a machine and its node while they are made.
type Edit func(m *v1alpha1.Machine, n *corev1.Node, l *v1alpha1.LedgerSpec)

// Deployment adds a MachineDeployment that selects the label pool=name.
func (b *Builder) Deployment(name string, edits ...func(*v1alpha1.MachineDeployment)) *Builder {
	d := v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}}
	for _, e := range edits {
		e(&d)
	}
	b.Objects.Deployments = append(b.Objects.Deployments, d)
	return b
}

// Budget adds a MachineDisruptionBudget over the label pool=pool.
func (b *Builder) Budget(name, pool string, edit func(*v1alpha1.MachineDisruptionBudgetSpec)) *Builder {
	budget := v1alpha1.MachineDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	budget.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}
	edit(&budget.Spec)
	b.Objects.Budgets = append(b.Objects.Budgets, budget)
	return b
}

// Machine adds a machine of the pool whose plan to drain is ready, with a node that is well.
func (b *Builder) Machine(name, pool string, role v1alpha1.Role, edits ...Edit) *Builder {
	m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, Labels: map[string]string{"pool": pool}}}
	m.Spec.Roles = []v1alpha1.Role{role}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.37.1"}
	target := v1alpha1.Target{Versions: v1alpha1.Versions{Kubelet: "v1.37.2"}}
	if role == v1alpha1.RoleControlPlane {
		m.Status.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: "v1.37.2", ControllerManager: "v1.37.2", Scheduler: "v1.37.2"}
	}
	m.Status.Assignment = &v1alpha1.Assignment{ID: "a-" + name, Generation: 1, Target: target}
	m.Status.Plan = &v1alpha1.PlanStatus{AssignmentID: "a-" + name, Hash: "hash", Disruption: v1alpha1.DisruptionDrain}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionTrue}}
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, e := range edits {
		e(&m, &n, &b.Objects.Ledger)
	}
	b.Objects.Machines = append(b.Objects.Machines, m)
	b.Objects.Nodes = append(b.Objects.Nodes, n)
	return b
}

// Build joins the fleet; a selector that cannot be parsed is a mistake of the test.
func (b *Builder) Build() *fleet.Fleet {
	f, err := fleet.Build(b.Objects)
	if err != nil {
		panic(err)
	}
	return f
}

// NotReady makes the node unwell.
func NotReady(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
	n.Status.Conditions[0].Status = corev1.ConditionFalse
}

// Cordoned is a cordon of someone else.
func Cordoned(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
	n.Spec.Unschedulable = true
}

// Tainted keeps pods off the node that do not tolerate the taint.
func Tainted(key string) Edit {
	return func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// InSlot gives the machine a slot of that disruption.
func InSlot(d v1alpha1.Disruption) Edit {
	return func(m *v1alpha1.Machine, _ *corev1.Node, l *v1alpha1.LedgerSpec) {
		l.Slots = append(l.Slots, v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), GrantID: "g-" + m.Name, Disruption: d, State: v1alpha1.SlotReserved})
	}
}

// Failed is a machine on which an operation failed.
func Failed(m *v1alpha1.Machine, _ *corev1.Node, _ *v1alpha1.LedgerSpec) {
	m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassApplyFailed, Failure: v1alpha1.Failure{Reason: "VerifyFailed"}}
}

// Plans sets the disruption of the plan.
func Plans(d v1alpha1.Disruption) Edit {
	return func(m *v1alpha1.Machine, _ *corev1.Node, _ *v1alpha1.LedgerSpec) { m.Status.Plan.Disruption = d }
}

// Of changes the machine alone.
func Of(edit func(*v1alpha1.Machine)) Edit {
	return func(m *v1alpha1.Machine, _ *corev1.Node, _ *v1alpha1.LedgerSpec) { edit(m) }
}

// Zone puts the node into a topology domain.
func Zone(zone string) Edit {
	return func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) { n.Labels["zone"] = zone }
}
