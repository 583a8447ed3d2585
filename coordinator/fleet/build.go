package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/drain"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Objects are what a Fleet is built from; all of one namespace, except the nodes.
type Objects struct {
	Machines    []v1alpha1.Machine
	Deployments []v1alpha1.MachineDeployment
	Budgets     []v1alpha1.MachineDisruptionBudget
	Nodes       []corev1.Node
	Ledger      v1alpha1.LedgerSpec
	Now         time.Time
	// Partial says that not all machines of the namespace are among them.
	Partial bool
}

// Build joins the objects. The fleet keeps pointers into them.
func Build(o Objects) (*Fleet, error) {
	f := &Fleet{Pools: map[string]*Pool{}, Stopped: o.Ledger.Stopped, Epoch: o.Ledger.Epoch, Now: o.Now}
	nodes := map[string]*Node{}
	for i := range o.Nodes {
		n := NodeOf(&o.Nodes[i])
		nodes[n.Name] = n
		f.nodes = append(f.nodes, n)
	}
	f.planner = ForPlanner(o.Machines, o.Nodes)
	claims, err := newClaims(o.Deployments)
	if err != nil {
		return nil, err
	}
	for i := range o.Machines {
		m := &Machine{Machine: &o.Machines[i], Node: nodes[o.Machines[i].Name]}
		m.Slot = SlotOf(&o.Ledger, m.Machine)
		f.join(m, claims)
		f.Machines = append(f.Machines, m)
	}
	for i := range o.Budgets {
		f.Budgets = append(f.Budgets, &o.Budgets[i])
	}
	f.Lost = lost(o, claims)
	f.sort()
	return f, nil
}

func (f *Fleet) sort() {
	byName := func(a, b *Machine) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(f.Machines, byName)
	for _, p := range f.Pools {
		slices.SortFunc(p.Machines, byName)
	}
	slices.SortFunc(f.Budgets, func(a, b *v1alpha1.MachineDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
}

func (f *Fleet) join(m *Machine, claims []claim) {
	var owner *v1alpha1.MachineDeployment
	for _, c := range claims {
		if c.selector.Matches(labels.Set(m.Labels)) {
			m.Claims = append(m.Claims, c.deployment.Name)
			owner = c.deployment
		}
	}
	name := ""
	if len(m.Claims) == 1 {
		name = owner.Name
	} else {
		owner = nil
	}
	p := f.Pools[name]
	if p == nil {
		p = &Pool{Name: name, Deployment: owner, now: f.Now}
		f.Pools[name] = p
	}
	p.Machines = append(p.Machines, m)
	m.Pool = p
}

type claim struct {
	deployment *v1alpha1.MachineDeployment
	selector   labels.Selector
}

func newClaims(deployments []v1alpha1.MachineDeployment) ([]claim, error) {
	claims := make([]claim, 0, len(deployments))
	for i := range deployments {
		sel, err := SelectorOf(deployments[i].Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("reading the selector of MachineDeployment %s: %w", deployments[i].Name, err)
		}
		claims = append(claims, claim{&deployments[i], sel})
	}
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.deployment.Name, b.deployment.Name) })
	return claims, nil
}

// SelectorOf is the selector of a MachineDeployment. An empty one matches nothing:
// a pool is never everything by accident.
func SelectorOf(s metav1.LabelSelector) (labels.Selector, error) {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	sel, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil, fmt.Errorf("parsing the label selector: %w", err)
	}
	return sel, nil
}

// SlotOf is the machine's slot in the ledger. A slot of an earlier machine of the same name is not its own.
func SlotOf(l *v1alpha1.LedgerSpec, m *v1alpha1.Machine) *v1alpha1.Slot {
	for i := range l.Slots {
		if l.Slots[i].Machine == m.Name && l.Slots[i].MachineUID == string(m.UID) {
			return &l.Slots[i]
		}
	}
	return nil
}

// NodeOf takes from a Node what counts; nil stays nil. No Ready condition is not ready.
func NodeOf(n *corev1.Node) *Node {
	if n == nil {
		return nil
	}
	out := &Node{
		Name: n.Name, UID: string(n.UID), Labels: n.Labels,
		Unschedulable: n.Spec.Unschedulable, CordonedBy: n.Annotations[v1alpha1.AnnotationCordonedBy],
		FoundCordonedBy: n.Annotations[v1alpha1.AnnotationFoundCordonedBy],
		ExcludedBy:      n.Annotations[v1alpha1.AnnotationExcludedBy],
		Marks:           drain.MarksOf(n),
		KubeletVersion:  n.Status.NodeInfo.KubeletVersion, RuntimeVersion: n.Status.NodeInfo.ContainerRuntimeVersion,
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule {
			out.Taints = append(out.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
			out.Unknown = c.Status == corev1.ConditionUnknown
			out.Message = c.Message
			out.NotReadySince = c.LastTransitionTime
		}
	}
	return out
}
