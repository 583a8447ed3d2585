package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Turn is the topology domain of a pool that is worked on, and its machines that are not
// finished; none when all domains are.
type Turn struct {
	Domain string
	Open   []string
}

// InTurn is the domain with a slot, else one that has been begun, else the first by name.
// It is found once for a reading of the fleet, which may have very many machines; slots
// that are reserved on that reading go to the very domain.
func (p *Pool) InTurn() Turn {
	if p.turn == nil {
		p.turn = p.findTurn(p.Rolling().TopologyKey)
	}
	return *p.turn
}

// domain is how far the machines of one topology domain are.
type domain struct {
	Turn
	busy, begun bool
}

func (p *Pool) findTurn(key string) *Turn {
	domains := map[string]*domain{}
	for _, m := range p.Machines {
		if m.StandsBy() { // it may go before its domain's turn
			continue
		}
		name := m.Domain(key)
		if domains[name] == nil {
			domains[name] = &domain{Turn: Turn{Domain: name}}
		}
		domains[name].add(m, p.Rolling().CordonedMachines == "Include")
	}
	maps.DeleteFunc(domains, func(_ string, d *domain) bool { return len(d.Open) == 0 })
	if len(domains) == 0 {
		return &Turn{}
	}
	first := slices.MinFunc(slices.Collect(maps.Values(domains)), func(a, b *domain) int {
		return cmp.Or(trueFirst(a.busy, b.busy), trueFirst(a.begun, b.begun), cmp.Compare(a.Domain, b.Domain))
	})
	return &first.Turn
}

func (d *domain) add(m *Machine, cordonedToo bool) {
	switch {
	case m.Slot != nil:
		d.busy, d.Open = true, append(d.Open, m.Name)
	case m.UpToDate():
		d.begun = true
	case !m.waitsForAPerson() && !m.outOfSight() && (cordonedToo || !m.Node.ForeignCordon()):
		d.Open = append(d.Open, m.Name)
	}
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// UpToDate says that the spec as it is now is met.
func (m *Machine) UpToDate() bool { return m.judged(metav1.ConditionTrue) }

// Outdated says that the spec as it is now is not met.
func (m *Machine) Outdated() bool { return m.judged(metav1.ConditionFalse) }

func (m *Machine) judged(as metav1.ConditionStatus) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	return c != nil && c.Status == as && c.ObservedGeneration == m.Generation
}

// outOfSight says that the node has been away for so long that nobody knows whether it comes
// back. One that does goes whenever it can: it holds up no domain until then.
func (m *Machine) outOfSight() bool {
	if m.Node == nil {
		return m.NeedsNode()
	}
	at := m.OutOfSightAt()
	return !at.IsZero() && !m.Pool.now.Before(at)
}

// OutOfSightAt is when time alone has the machine count as out of sight; zero for a node
// that is ready, and for none at all.
func (m *Machine) OutOfSightAt() time.Time {
	if m.Node == nil || m.Node.Ready {
		return time.Time{}
	}
	return m.Node.NotReadySince.Add(Silence)
}

// waitsForAPerson says that nothing is going to happen on the machine by itself.
func (m *Machine) waitsForAPerson() bool {
	return m.OutOfService() || m.Spec.Paused || upgrade.Failed(m.Machine) || m.DrainImpossible() || !m.DeletionTimestamp.IsZero() ||
		meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled)
}
