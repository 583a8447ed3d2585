package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/drains"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/drain"
)

// Cluster is what is there to choose from.
type Cluster struct {
	Nodes    []corev1.Node
	Machines []v1alpha1.Machine
	Pools    []v1alpha1.MachineDeployment
}

// Target is a node to be foreseen, with its Machine where it has one.
type Target struct {
	Node    *corev1.Node
	Machine *v1alpha1.Machine
}

// NotFound says that something was asked for by name and is not there.
type NotFound struct{ Name, Hint string }

// Error implements error.
func (n NotFound) Error() string {
	return fmt.Sprintf("%s is not there: %s", n.Name, cmp.Or(n.Hint, "name a Node, a Machine as machine/NAME, or a pool as machinedeployment/NAME"))
}

var (
	nodeKinds    = []string{"node", "nodes", "no"}
	machineKinds = []string{"machine", "machines", "mach", "machine.refit.dev", "machines.refit.dev"}
	poolKinds    = []string{"machinedeployment", "machinedeployments", "machd", "machinedeployment.refit.dev", "machinedeployments.refit.dev"}
)

// Select finds what is named; every node when nothing is. It also returns the Machines
// that have no Node, and so nothing to drain.
func (c Cluster) Select(names []string) (targets []Target, without []string, err error) {
	chosen := map[string]bool{}
	for _, name := range names {
		found, err := c.named(name)
		if err != nil {
			return nil, nil, err
		}
		for _, node := range found {
			chosen[node] = true
		}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if len(names) == 0 || chosen[n.Name] {
			targets = append(targets, Target{Node: n, Machine: c.machine(n.Name)})
		}
		delete(chosen, n.Name)
	}
	for name := range chosen {
		without = append(without, name)
	}
	slices.Sort(without)
	slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return targets, without, nil
}

// named are the names of the nodes that one argument stands for.
func (c Cluster) named(name string) ([]string, error) {
	kind, of, typed := strings.Cut(name, "/")
	if !typed {
		kind, of = "node", name
	}
	switch kind = strings.ToLower(kind); {
	case slices.Contains(nodeKinds, kind):
		if !slices.ContainsFunc(c.Nodes, func(n corev1.Node) bool { return n.Name == of }) {
			return nil, NotFound{Name: name}
		}
		return []string{of}, nil
	case slices.Contains(machineKinds, kind):
		if c.machine(of) == nil {
			return nil, NotFound{Name: name}
		}
		return []string{of}, nil
	case slices.Contains(poolKinds, kind):
		return c.pool(name, of)
	}
	return nil, NotFound{Name: name}
}

func (c Cluster) pool(name, of string) ([]string, error) {
	i := slices.IndexFunc(c.Pools, func(d v1alpha1.MachineDeployment) bool { return d.Name == of })
	if i < 0 {
		return nil, NotFound{Name: name}
	}
	selector, err := metav1.LabelSelectorAsSelector(&c.Pools[i].Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", name, err)
	}
	var out []string
	for _, m := range c.Machines {
		if selector.Matches(labels.Set(m.Labels)) {
			out = append(out, m.Name)
		}
	}
	if len(out) == 0 {
		return nil, NotFound{Name: "a Machine of " + name, Hint: "correct its selector, or label the Machines"}
	}
	return out, nil
}

func (c Cluster) machine(name string) *v1alpha1.Machine {
	for i := range c.Machines {
		if c.Machines[i].Name == name {
			return &c.Machines[i]
		}
	}
	return nil
}

// Overrides are policies that count in place of a Machine's; "" and 0 leave it.
type Overrides struct {
	UnmanagedPods, EmptyDir, OnTimeout string
	Timeout                            time.Duration
	// Reboot foresees the drain before a reboot, also where no plan has one.
	Reboot bool
}

// Request is what has to be foreseen for the target. A node without a Machine is drained by
// hand, where emptyDir data is kept unless a flag says otherwise.
func (c Cluster) Request(t Target, o Overrides) drain.ForecastRequest {
	spec := v1alpha1.MachineSpec{}
	spec.Drain = &v1alpha1.DrainSpec{EmptyDir: string(drain.ActionFail)}
	disruption := v1alpha1.DisruptionDrain
	if t.Machine != nil {
		spec = *t.Machine.Spec.DeepCopy()
		if p := fleet.FrozenPlan(t.Machine); p != nil {
			disruption = p.Disruption
		}
	}
	if o.Reboot {
		disruption = v1alpha1.DisruptionReboot
	}
	if spec.Drain == nil {
		spec.Drain = &v1alpha1.DrainSpec{}
	}
	spec.Drain.UnmanagedPods = cmp.Or(o.UnmanagedPods, spec.Drain.UnmanagedPods)
	spec.Drain.EmptyDir = cmp.Or(o.EmptyDir, spec.Drain.EmptyDir)
	if o.Timeout > 0 {
		spec.Drain.Timeout = &metav1.Duration{Duration: o.Timeout}
	}
	spec.Drain.OnTimeout = cmp.Or(o.OnTimeout, spec.Drain.OnTimeout)
	own := drains.OwnPods(coordinatorNamespace, coordinatorName)
	return drain.ForecastRequest{Node: t.Node.Name, Options: drains.OptionsFor(spec, c.elsewhere(t.Node), disruption, own)}
}

const coordinatorNamespace, coordinatorName = "refit-system", "refit-coordinator"

// elsewhere says whether any other node takes pods of this one.
func (c Cluster) elsewhere(n *corev1.Node) bool {
	from := fleet.NodeOf(n)
	return slices.ContainsFunc(c.Nodes, func(other corev1.Node) bool { return fleet.NodeOf(&other).TakesPodsOf(from) })
}
