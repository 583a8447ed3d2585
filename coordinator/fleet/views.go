package fleet

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Views keeps the planner's view of each namespace from one machine's look to the next. A
// view is made anew only when the state of some host has changed: where very many machines
// ask for their next hop at a time, nearly all of them ask of the same fleet. The zero value
// is ready, and safe for concurrent use.
type Views struct {
	mu   sync.Mutex
	kept map[string]*keptView
}

type keptView struct {
	at      uint64               // how many changes there were before it was made, at least
	hosts   map[string]*keptHost // of Machines, by name
	nodes   map[string]int       // where the Node of a name was in the list last
	others  string               // versions of the Nodes without a Machine
	patches map[string]string
	unknown map[string]string
	view    *upgrade.View
}

// keptHost is a host with the versions of the objects that it was made from.
type keptHost struct {
	machine, node string
	state         upgrade.HostState
	offers        offers
}

// Of is the view of a namespace with a machine as the caller has it, and that machine's host. The
// objects were listed after at changes had been counted. Of lists that are older than those of the
// view that is kept, nothing is kept: nobody would know again that it is.
func (v *Views) Of(namespace string, at uint64, machines []v1alpha1.Machine, nodes []corev1.Node, m *v1alpha1.Machine) (*upgrade.View, upgrade.HostState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil {
		v.kept = map[string]*keptView{}
	}
	k := v.kept[namespace]
	if k == nil {
		k = &keptView{hosts: map[string]*keptHost{}, nodes: map[string]int{}}
		v.kept[namespace] = k
	}
	if at < k.at {
		return upgrade.NewView(ForPlanner(with(m, machines), nodes)), upgrade.StateOf(m, stateOfNode(nodeOf(nodes, m.Name)), nil)
	}
	k.refresh(machines, nodes)
	k.at = at
	own := upgrade.StateOf(m, stateOfNode(k.node(nodes, m.Name)), nil)
	if k.hosts[m.Name].same(own, m) {
		return k.view, own
	}
	return upgrade.NewView(ForPlanner(with(m, machines), nodes)), own
}

// with are the machines with that one as the caller has it.
func with(m *v1alpha1.Machine, machines []v1alpha1.Machine) []v1alpha1.Machine {
	all := slices.Clone(machines)
	for i := range all {
		if all[i].Name == m.Name {
			all[i] = *m
		}
	}
	return all
}

func nodeOf(nodes []corev1.Node, name string) *corev1.Node {
	if i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == name }); i >= 0 {
		return &nodes[i]
	}
	return nil
}

// same says that the planner makes of the machine what it made when the host was taken in.
func (h *keptHost) same(state upgrade.HostState, m *v1alpha1.Machine) bool {
	return h != nil && equality.Semantic.DeepEqual(state, h.state) && equality.Semantic.DeepEqual(offersOf(m), h.offers)
}

// Kept is the view as it was made last and the machine's host in it, where nothing has changed
// since then and the machine is as it was: nobody has to be listed for that. The machine's own
// change is seen here and not by the count: whoever looks because of it may be before the count.
func (v *Views) Kept(namespace string, at uint64, m *v1alpha1.Machine, n *Node) (*upgrade.View, upgrade.HostState, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.kept[namespace]
	if k == nil || k.view == nil || k.at != at {
		return nil, upgrade.HostState{}, false
	}
	own := upgrade.StateOf(m, stateOf(n), nil)
	return k.view, own, k.hosts[m.Name].same(own, m)
}

// refresh makes the view anew if any host of it has changed. It is asked by every machine,
// and where nothing has changed it only compares.
func (k *keptView) refresh(machines []v1alpha1.Machine, nodes []corev1.Node) {
	changed, withNode := k.view == nil || len(machines) != len(k.hosts), 0
	for i := range machines {
		n := k.node(nodes, machines[i].Name)
		if n != nil {
			withNode++
		}
		changed = k.look(&machines[i], n) || changed
	}
	if len(machines) < len(k.hosts) {
		k.forget(machines)
	}
	others := ""
	if withNode < len(nodes) {
		others = k.otherNodes(nodes)
	}
	patches, unknown := upgrade.PassedReleases(machines)
	changed = changed || others != k.others || !maps.Equal(patches, k.patches) || !maps.Equal(unknown, k.unknown)
	k.others, k.patches, k.unknown = others, patches, unknown
	if changed {
		k.view = upgrade.NewView(k.fleet(machines, nodes))
	}
}

// fleet is ForPlanner, of hosts that are known already.
func (k *keptView) fleet(machines []v1alpha1.Machine, nodes []corev1.Node) upgrade.Fleet {
	f := upgrade.Fleet{HopPatch: k.patches, HopUnknown: k.unknown, Hosts: make([]upgrade.HostState, 0, len(machines))}
	for i := range machines {
		f.Hosts = append(f.Hosts, k.hosts[machines[i].Name].state)
	}
	for i := range nodes {
		if k.others != "" && k.hosts[nodes[i].Name] == nil {
			f.Hosts = append(f.Hosts, upgrade.Unmanaged(nodes[i].Name, *stateOfNode(&nodes[i])))
		}
	}
	return f
}

// look takes in one host, and says whether the planner sees it as another than before.
func (k *keptView) look(m *v1alpha1.Machine, n *corev1.Node) bool {
	version := ""
	if n != nil {
		version = n.ResourceVersion
	}
	was := k.hosts[m.Name]
	if was != nil && was.machine == m.ResourceVersion && was.node == version && m.ResourceVersion != "" {
		return false
	}
	now := &keptHost{m.ResourceVersion, version, upgrade.StateOf(m, stateOfNode(n), nil), offersOf(m)}
	k.hosts[m.Name] = now
	return was == nil || !equality.Semantic.DeepEqual(was.state, now.state)
}

// node finds a Node where it was last, or anew.
func (k *keptView) node(nodes []corev1.Node, name string) *corev1.Node {
	if i, known := k.nodes[name]; known && i < len(nodes) && nodes[i].Name == name {
		return &nodes[i]
	}
	if len(k.nodes) == len(nodes) && len(nodes) > 0 && k.same(nodes) {
		return nil
	}
	clear(k.nodes)
	for i := range nodes {
		k.nodes[nodes[i].Name] = i
	}
	if i, known := k.nodes[name]; known {
		return &nodes[i]
	}
	return nil
}

// same says that every Node is where it was.
func (k *keptView) same(nodes []corev1.Node) bool {
	for i := range nodes {
		if at, known := k.nodes[nodes[i].Name]; !known || at != i {
			return false
		}
	}
	return true
}

// forget leaves out the machines that are gone.
func (k *keptView) forget(machines []v1alpha1.Machine) {
	there := make(map[string]bool, len(machines))
	for i := range machines {
		there[machines[i].Name] = true
	}
	maps.DeleteFunc(k.hosts, func(name string, _ *keptHost) bool { return !there[name] })
}

func (k *keptView) otherNodes(nodes []corev1.Node) string {
	var out strings.Builder
	for i := range nodes {
		if k.hosts[nodes[i].Name] == nil {
			out.WriteString(nodes[i].Name + "=" + nodes[i].ResourceVersion + " ")
		}
	}
	return out.String()
}

func stateOfNode(n *corev1.Node) *upgrade.NodeState {
	if n == nil {
		return nil
	}
	of := NodeOf(n)
	return &upgrade.NodeState{Labels: of.Labels, Kubelet: of.KubeletVersion, NotReady: !of.Ready}
}
