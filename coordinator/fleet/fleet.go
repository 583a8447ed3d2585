// Package fleet is what the coordinator knows of one namespace at one moment: its
// machines with their nodes, slots and pools. It is plain data, read once, so that
// order and gates can judge it without a client, and so that a judgement can be
// repeated on a live reading before it is acted upon.
package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fleet is one reading of a namespace.
type Fleet struct {
	// Machines, sorted by name.
	Machines []*Machine
	// Pools by the name of their MachineDeployment; "" holds machines without one.
	Pools map[string]*Pool
	// Budgets are the MachineDisruptionBudgets, sorted by name.
	Budgets []*v1alpha1.MachineDisruptionBudget
	// Lost are the MachineDeployments that had machines and match none any more.
	Lost []string
	// Stopped is the namespace-wide stop switch.
	Stopped bool
	// Own is the node on which the leader runs; "" where it runs outside of the cluster.
	Own string
	// Epoch of the ledger that was read.
	Epoch int64
	// Now is when it was read, by the coordinator's clock.
	Now time.Time

	nodes   []*Node // of the whole cluster
	members []*Machine
	covered map[*v1alpha1.MachineDisruptionBudget]*Tally
	plan    *planned
	given   *int  // slots on this reading
	joined  *Pool // that a machine has joined last
	queue   kept[[]*Machine]
}

// View is the fleet as the planner sees it, parsed once. Slots do not change it.
func (f *Fleet) View() *upgrade.View { return f.plan.view() }

// Queue is what make makes of the fleet, made once for a reading. Slots that are given on it
// change nobody's place in it.
func (f *Fleet) Queue(make func() []*Machine) []*Machine { return f.queue.or(make) }

// State is a machine as the planner sees it, with its Node.
func (f *Fleet) State(machine string) upgrade.HostState {
	if h := f.plan.states()[machine]; h != nil {
		return *h
	}
	return upgrade.HostState{Name: machine}
}

// Skews are the machines whose kubelets are outside of their skew, and what to do about each.
// Readings may share the answer: it is only read.
func (f *Fleet) Skews() map[string]string { return f.plan.skews() }

// HasPlaceFor says whether any node takes pods of this one.
func (f *Fleet) HasPlaceFor(n *Node) bool { return n.hasPlaceIn(f.nodes) }

// Machine is one machine with all that bears on it.
type Machine struct {
	*v1alpha1.Machine
	// Node as the cluster sees it; nil where there is none.
	Node *Node
	// Slot it holds; nil when it holds none. On a reading it is given with Hold.
	Slot *v1alpha1.Slot
	// Pool it belongs to.
	Pool *Pool
	// Pods that a drain would take off its node; nil while nobody has counted them.
	Pods *int
	// Forecast of its drain; nil while nothing is foreseen.
	Forecast *Forecast
	// Checks are the answers to the checks of its pool, by name; those that are known.
	Checks map[string]CheckOutcome
	// Claims are the names of all MachineDeployments that match it; more than one is a conflict.
	Claims []string

	host *knownHost // what was made of it
}

// Hold gives the machine a slot on this reading, so that whoever is asked after it counts that.
func (m *Machine) Hold(s *v1alpha1.Slot) {
	m.Slot = s
	*m.Pool.given++
}

// Node is what counts of a Node object.
type Node struct {
	Name            string
	UID             string
	Ready           bool
	Unknown         bool // the cluster has lost sight of it
	NotReadySince   metav1.Time
	Message         string
	Unschedulable   bool
	CordonedBy      string         // our marker; "" when there is none
	FoundCordonedBy string         // our marker on a node that someone else has cordoned; "" when there is none
	ExcludedBy      string         // our marker of its exclusion from load balancers; "" when there is none
	Taints          []corev1.Taint // those that keep pods away
	Marks           drain.Marks    // that the node carries in our name
	Labels          map[string]string
	KubeletVersion  string
	RuntimeVersion  string
}

// Marked says that the node carries a cordon or an exclusion of ours, or that it was found cordoned by us.
func (n *Node) Marked() bool {
	return n != nil && (n.CordonedBy != "" || n.FoundCordonedBy != "" || n.ExcludedBy != "")
}

// ForeignCordon says that someone else than Refit took the node out of scheduling.
func (n *Node) ForeignCordon() bool { return n != nil && n.Unschedulable && n.CordonedBy == "" }

// TakesPodsOf says whether pods of the other node may be scheduled here: it is ready and
// schedulable, and has no taint that they have not met where they are. A tainted control
// plane is no place for a worker's pods.
func (n *Node) TakesPodsOf(other *Node) bool {
	if n.Name == other.Name || !n.Ready || n.Unschedulable {
		return false
	}
	return !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return !slices.Contains(other.Taints, t) })
}

func (n *Node) hasPlaceIn(nodes []*Node) bool {
	return slices.ContainsFunc(nodes, func(other *Node) bool { return other.TakesPodsOf(n) })
}

// Pool is a MachineDeployment with its machines. Deployment is nil for the pool of
// machines that no MachineDeployment matches; its bounds are the defaults.
type Pool struct {
	Name       string
	Deployment *v1alpha1.MachineDeployment
	Machines   []*Machine

	now     time.Time // of the reading
	given   *int      // slots on the reading
	turn    *Turn
	size    *int
	tally   *Tally
	hours   *hours
	samples map[bool]measured
	settled *time.Time
	// what the gates ask of the pool for each of its machines
	failures kept[[]Failure]
	inARow   kept[[]string]
	wentDown kept[[]*Machine]
	// canaries by the hop that waits for them
	canaries map[v1alpha1.KubernetesVersion]Canaries
}

// kept is found once for a reading of the fleet, which may have very many machines that ask for it.
type kept[T any] struct {
	known bool
	value T
}

func (k *kept[T]) or(find func() T) T {
	if !k.known {
		k.value, k.known = find(), true
	}
	return k.value
}

// Find returns the machine of that name, or nil.
func (f *Fleet) Find(name string) *Machine {
	i, found := slices.BinarySearchFunc(f.Machines, name, func(m *Machine, n string) int { return cmp.Compare(m.Name, n) })
	if !found {
		return nil
	}
	return f.Machines[i]
}

// HasRole says whether the machine has the role.
func (m *Machine) HasRole(r v1alpha1.Role) bool { return slices.Contains(m.Spec.Roles, r) }

// Domain is the value of a label of the machine's node; "" without the label or the node.
func (m *Machine) Domain(label string) string {
	if m.Node == nil {
		return ""
	}
	return m.Node.Labels[label]
}

// OutOfService machines leave every count.
func (m *Machine) OutOfService() bool {
	return m.Spec.Availability == v1alpha1.AvailabilityOutOfService
}

// Disrupts says whether a disruption takes pods away, and so charges the availability budgets.
func Disrupts(d v1alpha1.Disruption) bool {
	return d == v1alpha1.DisruptionDrain || d == v1alpha1.DisruptionReboot
}

// Unavailable says why the machine does not serve now, "" when it does. A machine in
// a slot that disrupts is unavailable from the reservation on, before its cordon shows.
func (m *Machine) Unavailable() string {
	switch {
	case m.OutOfService():
		return ""
	case m.StandsBy():
		return "" // whatever is done to it takes nothing away
	case m.Slot != nil && m.Slot.DrainsOnly:
		return "being emptied to stand by"
	case m.Slot != nil && Disrupts(m.Slot.Disruption):
		return "being upgraded"
	}
	return m.Down()
}

// Down says why the machine does not serve for a reason other than a slot. Work on a
// machine that is down takes nothing more away.
func (m *Machine) Down() string {
	switch {
	case m.OutOfService():
		return ""
	case m.NeedsNode() && m.Node == nil:
		return "no Node"
	case m.Node == nil && upgrade.Failed(m.Machine):
		return "failed: " + m.Status.RolloutFailure.Reason
	case m.Node == nil:
		return ""
	case !m.Node.Ready:
		return "NotReady"
	case m.Node.ForeignCordon():
		return "cordoned by someone else"
	case m.Node.Unschedulable && !m.Node.StandsBy() && (m.Slot == nil || m.Slot.GrantID != m.Node.CordonedBy):
		return cordonedByUs
	case upgrade.Failed(m.Machine):
		return "failed: " + m.Status.RolloutFailure.Reason
	}
	return ""
}

const cordonedByUs = "cordoned by an earlier operation"

// StaysAway says that the machine is unavailable for a reason that does not pass by itself,
// as an operation does, and a cordon of ours that is about to be taken off.
func (m *Machine) StaysAway() bool {
	down := m.Down()
	return m.Slot == nil && down != "" && down != cordonedByUs
}

// Silent says that a host without a Node has said nothing for too long.
func (m *Machine) Silent() bool {
	f := m.Status.RolloutFailure
	return !m.NeedsNode() && m.Node == nil && f != nil && f.Class == ClassUnreachable
}

// NeedsNode is false only for an Etcd-only host, which runs no kubelet.
func (m *Machine) NeedsNode() bool {
	return m.HasRole(v1alpha1.RoleControlPlane) || m.HasRole(v1alpha1.RoleWorker)
}

// Classes of rollout failures.
const (
	ClassUnreachable    = "Unreachable"
	ClassDrainBlocked   = upgrade.ClassDrainBlocked
	ClassApplyFailed    = "ApplyFailed"
	ClassUnhealthyAfter = "UnhealthyAfter"
	ClassRolledBack     = "RolledBack"
)

// CurrentAssignment says whether the assignment was made for the spec as it is now.
func CurrentAssignment(m *v1alpha1.Machine) bool {
	return m.Status.Assignment != nil && m.Status.Assignment.Generation == m.Generation
}

// FrozenPlan is the plan for the current assignment, nil when there is none yet.
func FrozenPlan(m *v1alpha1.Machine) *v1alpha1.PlanStatus {
	p := m.Status.Plan
	if !CurrentAssignment(m) || p == nil || p.AssignmentID != m.Status.Assignment.ID || p.Hash == "" {
		return nil
	}
	return p
}
