package simulation

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// world is every object, as an API server would have it. What is stored is never changed in
// place: whoever has read an object may keep it.
type world struct {
	namespace   string
	machines    map[string]*v1alpha1.Machine
	deployments map[string]*v1alpha1.MachineDeployment
	budgets     map[string]*v1alpha1.MachineDisruptionBudget
	nodes       map[string]*corev1.Node
	pods        map[types.NamespacedName]*corev1.Pod
	podBudgets  map[types.NamespacedName]*policyv1.PodDisruptionBudget
	ledger      *v1alpha1.Ledger
	access      map[string]client.Object // Roles and RoleBindings
	revisions   map[string]*appsv1.ControllerRevision
	// base is what people have written into the spec of each Machine, next to its template.
	base map[string]map[string]any
	// leases by node: how often its kubelet has renewed its own.
	leases map[string]int

	now      func() time.Time
	version  int64
	sorted   []string               // names of the Machines
	list     []v1alpha1.Machine     // in that order, changed in place
	lending  bool                   // whoever lists Machines now keeps them while they change
	lent     bool                   // list was, and is not changed in place
	nodeList []corev1.Node          // in the order of their names, changed in place
	podsOn   map[string]podSet      // by node; "" has those without one
	changed  changes                // told of each change
	podNews  int                    // grows with every change of pods and their budgets
	matching map[string][]*podMatch // budgets by namespace
}

type podSet map[types.NamespacedName]bool

// changes are told after they have happened; old is nil for what is new, now for what is gone.
type changes interface {
	machineChanged(old, now *v1alpha1.Machine)
	deploymentChanged(old, now *v1alpha1.MachineDeployment)
	budgetChanged()
	nodeChanged(old, now *corev1.Node)
	ledgerChanged(old, now *v1alpha1.Ledger)
	podsChanged()
}

func newWorld(namespace string, now func() time.Time) *world {
	return &world{
		namespace: namespace, now: now,
		machines: map[string]*v1alpha1.Machine{}, deployments: map[string]*v1alpha1.MachineDeployment{},
		budgets: map[string]*v1alpha1.MachineDisruptionBudget{}, nodes: map[string]*corev1.Node{},
		pods: map[types.NamespacedName]*corev1.Pod{}, podBudgets: map[types.NamespacedName]*policyv1.PodDisruptionBudget{},
		access: map[string]client.Object{}, revisions: map[string]*appsv1.ControllerRevision{}, base: map[string]map[string]any{}, leases: map[string]int{},
		podsOn: map[string]podSet{}, matching: map[string][]*podMatch{},
	}
}

// stamp gives an object what an API server gives it.
func (w *world) stamp(kind string, o client.Object) {
	w.version++
	o.SetResourceVersion(strconv.FormatInt(w.version, 10))
	if o.GetUID() == "" {
		o.SetUID(types.UID(strings.ToLower(kind) + "-" + o.GetName()))
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(w.now()))
	}
}

func (w *world) putMachine(m *v1alpha1.Machine) {
	old := w.machines[m.Name]
	w.stamp("Machine", m)
	w.machines[m.Name] = m
	if w.lent {
		w.list, w.lent = slices.Clone(w.list), false
	}
	at, found := slices.BinarySearch(w.sorted, m.Name)
	if found {
		w.list[at] = *m
	} else {
		w.sorted, w.list = slices.Insert(w.sorted, at, m.Name), slices.Insert(w.list, at, *m)
	}
	w.changed.machineChanged(old, m)
}

func (w *world) removeMachine(name string) {
	old := w.machines[name]
	delete(w.machines, name)
	w.list, w.lent = slices.Clone(w.list), false
	if at, found := slices.BinarySearch(w.sorted, name); found {
		w.sorted, w.list = slices.Delete(w.sorted, at, at+1), slices.Delete(w.list, at, at+1)
	}
	w.changed.machineChanged(old, nil)
}

// updateMachine changes a copy of the Machine; one that is gone stays so.
func (w *world) updateMachine(name string, change func(*v1alpha1.Machine)) {
	if m := w.machines[name]; m != nil {
		next := m.DeepCopy()
		change(next)
		w.putMachine(next)
	}
}

func (w *world) putDeployment(d *v1alpha1.MachineDeployment) {
	old := w.deployments[d.Name]
	w.stamp("MachineDeployment", d)
	w.deployments[d.Name] = d
	w.changed.deploymentChanged(old, d)
}

func (w *world) putBudget(b *v1alpha1.MachineDisruptionBudget) {
	w.stamp("MachineDisruptionBudget", b)
	w.budgets[b.Name] = b
	w.changed.budgetChanged()
}

func (w *world) putNode(n *corev1.Node) {
	old := w.nodes[n.Name]
	w.stamp("Node", n)
	w.nodes[n.Name] = n
	if at, found := w.nodeAt(n.Name); found {
		w.nodeList[at] = *n
	} else {
		w.nodeList = slices.Insert(w.nodeList, at, *n)
	}
	w.changed.nodeChanged(old, n)
}

func (w *world) removeNode(name string) {
	if old := w.nodes[name]; old != nil {
		delete(w.nodes, name)
		if at, found := w.nodeAt(name); found {
			w.nodeList = slices.Delete(w.nodeList, at, at+1)
		}
		w.changed.nodeChanged(old, nil)
	}
}

func (w *world) nodeAt(name string) (int, bool) {
	return slices.BinarySearchFunc(w.nodeList, name, func(n corev1.Node, name string) int { return strings.Compare(n.Name, name) })
}

func (w *world) updateNode(name string, change func(*corev1.Node)) {
	if n := w.nodes[name]; n != nil {
		next := n.DeepCopy()
		change(next)
		w.putNode(next)
	}
}

func (w *world) putLedger(l *v1alpha1.Ledger) {
	old := w.ledger
	w.stamp("Ledger", l)
	w.ledger = l
	w.changed.ledgerChanged(old, l)
}

// listNodes is shared by all who only read it.
func (w *world) listNodes() []corev1.Node { return w.nodeList }

func (w *world) listDeployments() []v1alpha1.MachineDeployment {
	out := make([]v1alpha1.MachineDeployment, 0, len(w.deployments))
	for _, name := range slices.Sorted(maps.Keys(w.deployments)) {
		out = append(out, *w.deployments[name])
	}
	return out
}

func (w *world) listBudgets() []v1alpha1.MachineDisruptionBudget {
	out := make([]v1alpha1.MachineDisruptionBudget, 0, len(w.budgets))
	for _, name := range slices.Sorted(maps.Keys(w.budgets)) {
		out = append(out, *w.budgets[name])
	}
	return out
}

func (w *world) slots() []v1alpha1.Slot {
	if w.ledger == nil {
		return nil
	}
	return w.ledger.Spec.Slots
}

// newNode is the Node of a machine for which the scenario has none.
func newNode(m *v1alpha1.Machine, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{corev1.LabelHostname: m.Name}}}
	maps.Copy(n.Labels, labels)
	if slices.Contains(m.Spec.Roles, v1alpha1.RoleControlPlane) {
		const role = "node-role.kubernetes.io/control-plane"
		n.Labels[role] = ""
		if !slices.Contains(m.Spec.Roles, v1alpha1.RoleWorker) {
			n.Spec.Taints = []corev1.Taint{{Key: role, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	return n
}

// nodeReady sets the condition Ready, and what comes with it.
func nodeReady(n *corev1.Node, status corev1.ConditionStatus, reason, message string, now time.Time) {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			if c.Status != status {
				c.LastTransitionTime = metav1.NewTime(now)
			}
			c.Status, c.Reason, c.Message = status, reason, message
			return
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
}

func isReady(n *corev1.Node) bool {
	return n != nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
