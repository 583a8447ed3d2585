package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Memory keeps what was made of each object from one reading of a fleet to the next: of very
// many machines few have changed since, and what the planner makes of all of them has mostly
// not changed at all. An object is known again by its resourceVersion. The zero value is
// ready, and safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	kept map[string]*remembered // by namespace
}

// Load is the function Load, with this memory.
func (k *Memory) Load(ctx context.Context, from Readers, l *v1alpha1.Ledger, now time.Time) (*Fleet, error) {
	o, err := read(ctx, from, l, now)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]*remembered{}
	}
	if k.kept[l.Namespace] == nil {
		k.kept[l.Namespace] = newRemembered()
	}
	return k.kept[l.Namespace].build(o)
}

type remembered struct {
	reading int // how many there were; what was not in the last one is gone
	nodes   map[string]*knownNode
	hosts   map[string]*knownHost
	// selectors are those of the MachineDeployments that the machines' claims were found by.
	selectors []string
	// machines and others are the hosts of the last reading in its order, which is that of the plan.
	machines, others []*knownHost
	plan             *planned
	// nodeList are the nodes of this reading as far as it has come, and of the last one beyond. Where
	// objects come in the same order again, nothing has to be searched for.
	nodeList []*knownNode
}

type knownNode struct {
	version string
	node    *Node
	reading int
}

// knownHost is what was made of a Machine, or of a Node that has none.
type knownHost struct {
	version string
	node    *Node
	state   upgrade.HostState
	claims  []string
	claimed bool // claims are those of the selectors as they are
	reading int
	// samples are what was measured in operations without and with a drain.
	samples [2]measured
}

func newRemembered() *remembered {
	return &remembered{nodes: map[string]*knownNode{}, hosts: map[string]*knownHost{}}
}

// node is what counts of a Node; the same as before where it has not changed.
func (r *remembered) node(i int, n *corev1.Node) *Node {
	var known *knownNode
	if i < len(r.nodeList) && r.nodeList[i].node.Name == n.Name {
		known = r.nodeList[i]
	} else {
		known = r.nodes[n.Name]
	}
	if known == nil || known.version != n.ResourceVersion || n.ResourceVersion == "" {
		known = &knownNode{version: n.ResourceVersion, node: NodeOf(n)}
		r.nodes[n.Name] = known
	}
	known.reading = r.reading
	if i < len(r.nodeList) {
		r.nodeList[i] = known
	} else {
		r.nodeList = append(r.nodeList, known)
	}
	return known.node
}

// nodeNamed is a Node of this reading, or nil.
func (r *remembered) nodeNamed(i int, name string) *Node {
	if i < len(r.nodeList) && r.nodeList[i].node.Name == name && r.nodeList[i].reading == r.reading {
		return r.nodeList[i].node
	}
	if known := r.nodes[name]; known != nil && known.reading == r.reading {
		return known.node
	}
	return nil
}

// machine is what was made of a Machine, and whether the planner sees it as another host than before.
func (r *remembered) machine(i int, m *v1alpha1.Machine, n *Node) (host *knownHost, changed bool) {
	var known *knownHost
	if i < len(r.machines) && r.machines[i].state.Name == m.Name {
		known = r.machines[i]
	} else {
		known = r.hosts[m.Name]
	}
	if known != nil && known.version == m.ResourceVersion && known.node == n && m.ResourceVersion != "" {
		known.reading = r.reading
		return known, false
	}
	now := &knownHost{version: m.ResourceVersion, node: n, state: upgrade.StateOf(m, stateOf(n), nil), reading: r.reading}
	now.samples = [2]measured{measuredOf(m, false), measuredOf(m, true)}
	r.hosts[m.Name] = now
	if known != nil && equality.Semantic.DeepEqual(known.state, now.state) {
		now.state = known.state
		return now, false
	}
	return now, true
}

// isMachine says that the node is that of a Machine of this reading.
func (r *remembered) isMachine(i int, n *Node, hosts []*knownHost) bool {
	if i < len(hosts) && hosts[i].state.Name == n.Name {
		return true
	}
	known := r.hosts[n.Name]
	return known != nil && known.reading == r.reading
}

// other is a Node without a Machine, as the planner sees it.
func (r *remembered) other(n *Node) (host *knownHost, changed bool) {
	key := "Node/" + n.Name // no name of a Machine has a slash
	known := r.hosts[key]
	if known == nil || known.node != n {
		known, changed = &knownHost{node: n, state: upgrade.Unmanaged(n.Name, *stateOf(n))}, true
		r.hosts[key] = known
	}
	known.reading = r.reading
	return known, changed
}

func stateOf(n *Node) *upgrade.NodeState {
	if n == nil {
		return nil
	}
	return &upgrade.NodeState{Labels: n.Labels, Kubelet: n.KubeletVersion, NotReady: !n.Ready}
}

// planFor is the planner's part of the fleet: the last one, unless some host has changed.
func (r *remembered) planFor(machines []v1alpha1.Machine, now, others []*knownHost, changed bool) *planned {
	patches, unknown := upgrade.PassedReleases(machines)
	same := !changed && r.plan != nil && maps.Equal(patches, r.plan.fleet.HopPatch) && maps.Equal(unknown, r.plan.fleet.HopUnknown) &&
		len(now) == len(r.machines) && len(others) == len(r.others) && sameHosts(now, r.machines) && sameHosts(others, r.others)
	r.machines, r.others = now, others
	if same {
		return r.plan
	}
	f := upgrade.Fleet{HopPatch: patches, HopUnknown: unknown, Hosts: make([]upgrade.HostState, 0, len(now)+len(others))}
	for _, h := range slices.Concat(now, others) {
		f.Hosts = append(f.Hosts, h.state)
	}
	r.plan = newPlanned(f)
	return r.plan
}

// sameHosts says that the hosts have the names that they had, in that order.
func sameHosts(a, b []*knownHost) bool {
	return slices.EqualFunc(a, b, func(a, b *knownHost) bool { return a == b || a.state.Name == b.state.Name })
}

// forget leaves out what was not in this reading.
func (r *remembered) forget(nodes, hosts int) {
	if len(r.nodes) > nodes {
		maps.DeleteFunc(r.nodes, func(_ string, n *knownNode) bool { return n.reading != r.reading })
	}
	if len(r.hosts) > hosts {
		maps.DeleteFunc(r.hosts, func(_ string, h *knownHost) bool { return h.reading != r.reading })
	}
}

// planned is the fleet as the planner sees it. Readings may share it.
type planned struct {
	fleet  upgrade.Fleet
	view   func() *upgrade.View
	states func() map[string]*upgrade.HostState
	skews  func() map[string]string
}

func newPlanned(f upgrade.Fleet) *planned {
	p := &planned{fleet: f}
	p.view = sync.OnceValue(func() *upgrade.View { return upgrade.NewView(p.fleet) })
	p.states = sync.OnceValue(func() map[string]*upgrade.HostState {
		states := make(map[string]*upgrade.HostState, len(p.fleet.Hosts))
		for i := range p.fleet.Hosts {
			states[p.fleet.Hosts[i].Name] = &p.fleet.Hosts[i]
		}
		return states
	})
	p.skews = sync.OnceValue(func() map[string]string {
		out := map[string]string{}
		for i := range p.fleet.Hosts {
			if h := p.fleet.Hosts[i]; h.Managed {
				for _, finding := range p.view().SkewFindings(h) {
					out[h.Name] = finding.Message
				}
			}
		}
		return out
	})
	return p
}
