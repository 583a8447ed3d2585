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
	"k8s.io/apimachinery/pkg/util/cache"
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
func Build(o Objects) (*Fleet, error) { return newRemembered().build(o) }

func (r *remembered) build(o Objects) (*Fleet, error) {
	claims, err := newClaims(o.Deployments)
	if err != nil {
		return nil, err
	}
	r.reading++
	f := &Fleet{Pools: map[string]*Pool{}, Stopped: o.Ledger.Stopped, Epoch: o.Ledger.Epoch, Now: o.Now, given: new(int)}
	f.nodes = make([]*Node, 0, len(o.Nodes))
	for i := range o.Nodes {
		f.nodes = append(f.nodes, r.node(i, &o.Nodes[i]))
	}
	selectors := textsOf(claims)
	reclaim := !slices.Equal(selectors, r.selectors)
	r.selectors = selectors
	hosts, others, changed := make([]*knownHost, 0, len(o.Machines)), []*knownHost(nil), false
	all, slots := make([]Machine, len(o.Machines)), slotsOf(&o.Ledger)
	f.Machines = make([]*Machine, 0, len(o.Machines))
	for i := range o.Machines {
		m := &all[i]
		m.Machine, m.Node = &o.Machines[i], r.nodeNamed(i, o.Machines[i].Name)
		if len(slots) > 0 {
			m.Slot = slots[slotKey{m.Name, string(m.UID)}]
		}
		host, news := r.machine(i, m.Machine, m.Node)
		m.host = host
		if reclaim || !host.claimed {
			host.claims, host.claimed = claimsOn(m.Machine, claims), true
		}
		m.Claims = host.claims
		f.join(m, claims)
		f.Machines = append(f.Machines, m)
		hosts, changed = append(hosts, host), changed || news
	}
	for i, n := range f.nodes {
		if !r.isMachine(i, n, hosts) {
			host, news := r.other(n)
			others, changed = append(others, host), changed || news
		}
	}
	f.plan = r.planFor(o.Machines, hosts, others, changed)
	r.forget(len(o.Nodes), len(hosts)+len(others))
	for i := range o.Budgets {
		f.Budgets = append(f.Budgets, &o.Budgets[i])
	}
	f.Lost = lost(f, o, claims)
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

// claimsOn are the names of the deployments that select the machine.
func claimsOn(m *v1alpha1.Machine, claims []claim) []string {
	var out []string
	for _, c := range claims {
		if c.selector.Matches(labels.Set(m.Labels)) {
			out = append(out, c.deployment.Name)
		}
	}
	return out
}

func (f *Fleet) join(m *Machine, claims []claim) {
	name := ""
	if len(m.Claims) == 1 {
		name = m.Claims[0]
	}
	p := f.joined // mostly that of the one before
	if p == nil || p.Name != name {
		p = f.Pools[name]
	}
	if p == nil {
		p = &Pool{Name: name, now: f.Now, given: f.given}
		if at := slices.IndexFunc(claims, func(c claim) bool { return name != "" && c.deployment.Name == name }); at >= 0 {
			p.Deployment = claims[at].deployment
		}
		f.Pools[name] = p
	}
	f.joined = p
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

// textsOf are the names and selectors of the deployments.
func textsOf(claims []claim) []string {
	out := make([]string, 0, 2*len(claims))
	for _, c := range claims {
		out = append(out, c.deployment.Name, c.selector.String())
	}
	return out
}

// SelectorOf is the selector of a MachineDeployment. An empty one matches nothing:
// a pool is never everything by accident.
func SelectorOf(s metav1.LabelSelector) (labels.Selector, error) {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	key, short := shortKey(s)
	if short {
		if kept, is := shortSelectors.Get(key); is {
			if known, ok := kept.(labels.Selector); ok {
				return known, nil
			}
		}
	}
	sel, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil, fmt.Errorf("parsing the label selector: %w", err)
	}
	if short {
		shortSelectors.Add(key, sel, time.Hour)
	}
	return sel, nil
}

// shortSelectors are those of one label, which nearly all are, as they were read: each look at
// each machine asks for those of all deployments.
var shortSelectors = cache.NewLRUExpireCache(1024)

type shortSelector struct{ label, value string }

func shortKey(s metav1.LabelSelector) (shortSelector, bool) {
	for label, value := range s.MatchLabels {
		return shortSelector{label, value}, len(s.MatchLabels) == 1 && len(s.MatchExpressions) == 0
	}
	return shortSelector{}, false
}

type slotKey struct{ machine, uid string }

// slotsOf are the slots by their machines, as SlotOf finds them.
func slotsOf(l *v1alpha1.LedgerSpec) map[slotKey]*v1alpha1.Slot {
	out := make(map[slotKey]*v1alpha1.Slot, len(l.Slots))
	for i := range l.Slots {
		s := &l.Slots[i]
		if key := (slotKey{s.Machine, s.MachineUID}); out[key] == nil {
			out[key] = s
		}
	}
	return out
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
