// Package order decides who is next. It is pure: the same fleet gives the same order.
//
//	etcd on machines of its own before the control plane, and that before workers
//	the leader's own node last, where it is emptied
//	machines that are down already: work on them takes nothing away
//	machines that stand by: nobody misses them, and they take over for the others
//	least disruption: budget room is used at once
//	the longest by what was measured before: one that begins last ends last
//	the longest waiting, then by name
package order

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Candidates are the machines that are ready for a slot, the next one first.
func Candidates(f *fleet.Fleet) []*fleet.Machine {
	queue := f.Queue(func() []*fleet.Machine { return line(f) })
	if !slices.ContainsFunc(queue, holds) {
		return queue
	}
	return slices.DeleteFunc(slices.Clone(queue), holds)
}

func holds(m *fleet.Machine) bool { return m.Slot != nil }

func line(f *fleet.Fleet) []*fleet.Machine {
	var ready []candidate
	for _, m := range f.Machines {
		if Ready(m) {
			ready = append(ready, candidate{m, m.Usual(), own(f, m)})
		}
	}
	slices.SortStableFunc(ready, before)
	var out []*fleet.Machine
	for _, c := range ready {
		out = append(out, c.Machine)
	}
	return out
}

// candidate is a machine with how long it usually takes; 0 when nothing was measured.
type candidate struct {
	*fleet.Machine
	usual time.Duration
	own   int
}

// Ready says that everything a slot needs is there: a frozen, staged plan that nothing
// forbids to run, and no slot yet.
func Ready(m *fleet.Machine) bool {
	switch {
	case m.Slot != nil, m.OutOfService(), !m.DeletionTimestamp.IsZero():
		return false
	case upgrade.Failed(m.Machine), fleet.FrozenPlan(m.Machine) == nil:
		return false
	case m.Status.HostFailure != nil && m.Status.HostFailure.Terminal:
		return false
	}
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStaged) && !planBlocked(m.Status.Plan)
}

func planBlocked(p *v1alpha1.PlanStatus) bool {
	return slices.ContainsFunc(p.Findings, func(f v1alpha1.Finding) bool { return f.Severity == "Error" })
}

func before(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(plane(a.Machine), plane(b.Machine)),
		cmp.Compare(a.own, b.own),
		cmp.Compare(down(a.Machine), down(b.Machine)),
		cmp.Compare(standby(a.Machine), standby(b.Machine)),
		cmp.Compare(disruption(a.Machine), disruption(b.Machine)),
		cmp.Compare(b.usual, a.usual),
		cmp.Compare(waiting(a.Machine), waiting(b.Machine)),
		cmp.Compare(a.Name, b.Name),
	)
}

func plane(m *fleet.Machine) int {
	switch {
	case m.HasRole(v1alpha1.RoleControlPlane):
		return 1
	case m.HasRole(v1alpha1.RoleEtcd):
		return 0
	}
	return 2
}

func own(f *fleet.Fleet, m *fleet.Machine) int {
	if f.Own != "" && m.Node != nil && m.Node.Name == f.Own && fleet.Disrupts(m.Status.Plan.Disruption) {
		return 1
	}
	return 0
}

func down(m *fleet.Machine) int {
	if m.Down() != "" {
		return 0
	}
	return 1
}

func standby(m *fleet.Machine) int {
	if m.StandsBy() {
		return 0
	}
	return 1
}

func disruption(m *fleet.Machine) int {
	return slices.Index([]v1alpha1.Disruption{
		v1alpha1.DisruptionNone, v1alpha1.DisruptionRestart, v1alpha1.DisruptionDrain, v1alpha1.DisruptionReboot,
	}, m.Status.Plan.Disruption)
}

// waiting is since when, in seconds; machines that do not wait yet come last.
func waiting(m *fleet.Machine) int64 {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionWaiting)
	if c == nil || c.Status != "True" {
		return 1 << 62
	}
	return c.LastTransitionTime.Unix()
}
