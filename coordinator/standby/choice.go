package standby

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Choice is who of a pool stands by, by name; everyone else serves.
type Choice struct {
	// Always are those that would stand by without a rollout.
	Always map[string]bool
	// Now are those of them that the rollout leaves: a surge puts the others to work.
	Now map[string]bool
}

// Choose decides for a pool in which so many machines wait for nothing but room to be drained.
func Choose(p *fleet.Pool, waiting int, now time.Time) Choice {
	var members []*fleet.Machine
	wished, taken := 0, 0
	for _, m := range p.Machines {
		if m.OutOfService() || !m.DeletionTimestamp.IsZero() || m.Lost(now) {
			continue
		}
		members = append(members, m)
		if m.WishedStandby() {
			wished++
		}
		if m.TakenToWork() {
			taken++
		}
	}
	always := wished
	if p.Deployment != nil && p.Deployment.Spec.Replicas != nil {
		always = max(wished, len(members)-p.Size())
	}
	surge := min(p.MaxSurge(), waiting+atWork(members))
	queue := preferred(members)
	return Choice{Always: first(queue, always-taken), Now: first(queue, always-taken-surge)}
}

func atWork(members []*fleet.Machine) int {
	n := 0
	for _, m := range members {
		if m.AtWork() {
			n++
		}
	}
	return n
}

func first(queue []*fleet.Machine, n int) map[string]bool {
	out := map[string]bool{}
	for _, m := range queue[:min(max(n, 0), len(queue))] {
		out[m.Name] = true
	}
	return out
}

// preferred are the machines that may stand by, the first one first: what stands by and is
// no use at work, what a person has named, what stands by, what is empty already, and then
// those that are cheap to empty. Control planes stand by only if their own spec says so.
func preferred(members []*fleet.Machine) []*fleet.Machine {
	var queue []*fleet.Machine
	for _, m := range members {
		worker := !m.HasRole(v1alpha1.RoleControlPlane) && !m.HasRole(v1alpha1.RoleEtcd)
		if m.Node != nil && !m.TakenToWork() && (worker || m.WishedStandby()) {
			queue = append(queue, m)
		}
	}
	slices.SortStableFunc(queue, func(a, b *fleet.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(pods(a), pods(b)), cmp.Compare(a.Name, b.Name))
	})
	return queue
}

func rank(m *fleet.Machine) int {
	_, next := m.Annotations[v1alpha1.AnnotationStandbyNext]
	_, leaving := m.Annotations[v1alpha1.AnnotationDeleteMachine]
	ranks := []bool{
		m.StandsBy() && m.Unusable() != "",
		m.StandsBy() && !m.UpToDate(),
		m.WishedStandby(),
		next || leaving,
		m.StandsBy(),
		m.Slot != nil && m.Slot.DrainsOnly,
		emptied(m),
	}
	if i := slices.Index(ranks, true); i >= 0 {
		return i
	}
	return len(ranks)
}

// emptied says that the node was drained in the slot that the machine is in.
func emptied(m *fleet.Machine) bool {
	s := m.Slot
	return s != nil && fleet.Disrupts(s.Disruption) && s.State != v1alpha1.SlotReserved && s.UncordonedTime == nil
}

func pods(m *fleet.Machine) int {
	if m.Pods == nil {
		return math.MaxInt
	}
	return *m.Pods
}
