package fleet

import (
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
	hosts   map[string]keptHost // of Machines, by name
	others  map[string]string   // versions of the Nodes without one
	patches map[string]string
	unknown map[string]string
	view    *upgrade.View
}

// keptHost is a host with the versions of the objects that it was made from.
type keptHost struct {
	machine, node string
	state         upgrade.HostState
}

// Of is the view of a namespace with a machine as the caller has it, and that machine's host.
func (v *Views) Of(namespace string, machines []v1alpha1.Machine, nodes []corev1.Node, m *v1alpha1.Machine) (*upgrade.View, upgrade.HostState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil {
		v.kept = map[string]*keptView{}
	}
	k := v.kept[namespace]
	if k == nil {
		k = &keptView{}
		v.kept[namespace] = k
	}
	k.refresh(machines, nodes)
	own := upgrade.StateOf(m, nodeState(nodes, m.Name), nil)
	if equality.Semantic.DeepEqual(own, k.hosts[m.Name].state) {
		return k.view, own
	}
	all := append([]v1alpha1.Machine{}, machines...)
	for i := range all {
		if all[i].Name == m.Name {
			all[i] = *m
		}
	}
	return upgrade.NewView(ForPlanner(all, nodes)), own
}

// refresh makes the view anew if any host of it has changed.
func (k *keptView) refresh(machines []v1alpha1.Machine, nodes []corev1.Node) {
	byName := make(map[string]*corev1.Node, len(nodes))
	for i := range nodes {
		byName[nodes[i].Name] = &nodes[i]
	}
	changed := k.view == nil
	hosts := make(map[string]keptHost, len(machines))
	for i := range machines {
		m := &machines[i]
		n, was := byName[m.Name], k.hosts[m.Name]
		delete(byName, m.Name)
		version := ""
		if n != nil {
			version = n.ResourceVersion
		}
		now := was
		if was.machine != m.ResourceVersion || was.node != version || m.ResourceVersion == "" {
			now = keptHost{m.ResourceVersion, version, upgrade.StateOf(m, stateOfNode(n), nil)}
			changed = changed || !equality.Semantic.DeepEqual(was.state, now.state)
		}
		hosts[m.Name] = now
	}
	others := make(map[string]string, len(byName))
	for name, n := range byName {
		others[name] = n.ResourceVersion
	}
	patches, unknown := upgrade.PassedReleases(machines)
	changed = changed || len(hosts) != len(k.hosts) || !equality.Semantic.DeepEqual(others, k.others) ||
		!equality.Semantic.DeepEqual(patches, k.patches) || !equality.Semantic.DeepEqual(unknown, k.unknown)
	k.hosts, k.others, k.patches, k.unknown = hosts, others, patches, unknown
	if changed {
		k.view = upgrade.NewView(ForPlanner(machines, nodes))
	}
}

func nodeState(nodes []corev1.Node, name string) *upgrade.NodeState {
	for i := range nodes {
		if nodes[i].Name == name {
			return stateOfNode(&nodes[i])
		}
	}
	return nil
}

func stateOfNode(n *corev1.Node) *upgrade.NodeState {
	if n == nil {
		return nil
	}
	of := NodeOf(n)
	return &upgrade.NodeState{Labels: of.Labels, Kubelet: of.KubeletVersion, NotReady: !of.Ready}
}
