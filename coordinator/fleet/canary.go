package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Canaries are the machines of a pool, or of one topology domain of it, that go first.
type Canaries struct {
	// Open are those that are not through yet.
	Open []*Machine
	// Failed are those of them on which an operation failed.
	Failed []*Machine
}

// Is says that the machine is one of the canaries that are not through.
func (c Canaries) Is(m *Machine) bool { return slices.Contains(c.Open, m) }

// HasCanaries says that machines of the pool go first, alone. Members of the control plane
// go one at a time in any case, and none can get further than the others: they have none.
func (m *Machine) HasCanaries() bool {
	return m.Pool.Rolling().Canary != nil && !m.member()
}

func (m *Machine) member() bool {
	return m.HasRole(v1alpha1.RoleControlPlane) || m.HasRole(v1alpha1.RoleEtcd)
}

// CanariesBefore are the canaries that the machine waits for, of all domains: those that
// have to be through before the hop that it is about to take. They are found once for a
// reading of the fleet and a hop; slots that are reserved on that reading go to them.
func (m *Machine) CanariesBefore() Canaries {
	hop := m.hop()
	found, known := m.Pool.canaries[hop]
	if !known {
		found = m.Pool.findCanaries(hop)
		if m.Pool.canaries == nil {
			m.Pool.canaries = map[v1alpha1.KubernetesVersion]Canaries{}
		}
		m.Pool.canaries[hop] = found
	}
	return found
}

// hop is the kubelet that the machine is about to get on its way to another one, "" where
// it gets to its wish: a canary may have to wait on its way for the very machines that
// wait for it, when the control plane can go on only after all kubelets have.
func (m *Machine) hop() v1alpha1.KubernetesVersion {
	a := m.Status.Assignment
	if !CurrentAssignment(m.Machine) || m.Spec.Versions == nil || a.Target.Kubelet == m.Spec.Versions.Kubelet {
		return ""
	}
	return a.Target.Kubelet
}

// TemplateWritten says that the machines of the pool have the template as it is now: before
// that, one that is up to date may be so with an older spec.
func (p *Pool) TemplateWritten() bool {
	d := p.Deployment
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing)
	return d.Status.ObservedGeneration == d.Generation && (c == nil || c.Reason != ReasonTemplateRefused)
}

// ReasonTemplateRefused is that of a pool whose template cannot be written into its machines.
const ReasonTemplateRefused = "TemplateRefused"

func (p *Pool) findCanaries(hop v1alpha1.KubernetesVersion) Canaries {
	domains := map[string][]*Machine{}
	for _, m := range p.Machines {
		if m.member() {
			continue
		}
		domain := ""
		if p.Rolling().Canary.PerTopologyDomain {
			domain = m.Domain(p.Rolling().TopologyKey)
		}
		domains[domain] = append(domains[domain], m)
	}
	var out Canaries
	for _, machines := range domains {
		out.choose(machines, int(p.Rolling().Canary.Count), hop)
	}
	byName := func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(out.Open, byName)
	slices.SortFunc(out.Failed, byName)
	return out
}

// choose takes the canaries of one domain: those that are through, then those that have
// begun, then whoever can, by name. So a canary stays one, a machine that leaves before it
// began is replaced, and a failure after the canaries is not one of theirs.
func (c *Canaries) choose(machines []*Machine, count int, hop v1alpha1.KubernetesVersion) {
	stages := make(map[*Machine]int, len(machines))
	var able []*Machine
	for _, m := range machines {
		if stages[m] = m.canaryStage(hop); stages[m] != unable {
			able = append(able, m)
		}
	}
	slices.SortFunc(able, func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(stages[a], stages[b]), strings.Compare(a.Name, b.Name))
	})
	for _, m := range able[:min(count, len(able))] {
		if stages[m] == through {
			continue
		}
		c.Open = append(c.Open, m)
		if upgrade.Failed(m.Machine) {
			c.Failed = append(c.Failed, m)
		}
	}
}

// How far a machine is as a canary, the best first.
const (
	through  = iota // it has what the others are about to get, is well, and its slot is released
	begun           // it is being worked on, failed, or is not well with what it got
	named           // the operator has named it
	assigned        // it can be the next
	later           // it waits for others
	away            // it is down
	unable          // it waits for a person
)

func (m *Machine) canaryStage(hop v1alpha1.KubernetesVersion) int {
	switch {
	case m.OutOfService() || !m.DeletionTimestamp.IsZero():
		return unable
	case m.Slot != nil || upgrade.Failed(m.Machine):
		return begun
	case m.UpToDate() || m.has(hop):
		return m.arrivedAs()
	case m.cannotBegin():
		return unable
	}
	return m.startsAs()
}

// arrivedAs is the stage of a machine that has what the others are about to get.
func (m *Machine) arrivedAs() int {
	switch {
	case m.well():
		return through
	case m.Node.ForeignCordon():
		return unable
	}
	return begun
}

// startsAs is the stage of a machine that has not begun.
func (m *Machine) startsAs() int {
	switch {
	case m.Pool.Manual() && m.Named():
		return named
	case m.Down() != "" || m.Status.Versions == nil:
		return away
	case CurrentAssignment(m.Machine):
		return assigned
	}
	return later
}

// cannotBegin says that nothing is going to happen on the machine soon.
func (m *Machine) cannotBegin() bool {
	return m.waitsForAPerson() || m.waitsToRetry() || (m.Node.ForeignCordon() && m.Pool.Rolling().CordonedMachines != "Include")
}

// has says that the machine has the kubelet of the hop.
func (m *Machine) has(hop v1alpha1.KubernetesVersion) bool {
	return hop != "" && m.Status.Versions != nil && upgrade.SameKubernetes(m.Status.Versions.Kubelet, string(hop))
}

// well says that the machine serves, and that nothing is known against it.
func (m *Machine) well() bool {
	return m.Down() == "" && !meta.IsStatusConditionFalse(m.Status.Conditions, v1alpha1.ConditionHealthy)
}

// waitsToRetry says that a drain did not end, and is not tried again yet.
func (m *Machine) waitsToRetry() bool {
	f := m.Status.RolloutFailure
	return f != nil && f.NextRetryTime != nil && m.Pool.now.Before(f.NextRetryTime.Time)
}
