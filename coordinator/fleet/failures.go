package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultProgressDeadline is that of a MachineDeployment that names none.
const DefaultProgressDeadline = time.Hour

// ProgressDeadline of the pool.
func (p *Pool) ProgressDeadline() time.Duration {
	if p.Deployment != nil && p.Deployment.Spec.ProgressDeadline != nil && p.Deployment.Spec.ProgressDeadline.Duration > 0 {
		return p.Deployment.Spec.ProgressDeadline.Duration
	}
	return DefaultProgressDeadline
}

// Failure of a machine that counts towards the threshold of its pool.
type Failure struct{ Machine, Reason string }

// Failures of the pool that count. What failed on a host counts at once. What is tried
// again by itself, a drain that is blocked and a plan whose packages cannot be had, counts
// when that has gone on for the pool's progress deadline. They are found once for a reading.
func (p *Pool) Failures() []Failure { return p.failures.or(p.findFailures) }

func (p *Pool) findFailures() []Failure {
	var out []Failure
	for _, m := range p.Machines {
		if m.OutOfService() {
			continue
		}
		if upgrade.Failed(m.Machine) {
			out = append(out, Failure{m.Name, m.Status.RolloutFailure.Reason})
		} else if at, reason := m.fails(p.ProgressDeadline()); reason != "" && !p.now.Before(at) {
			out = append(out, Failure{m.Name, reason})
		}
	}
	return out
}

// NextFailure is when time alone makes another failure of the pool count; zero when it does not.
func (p *Pool) NextFailure() time.Time {
	var next time.Time
	for _, m := range p.Machines {
		at, reason := m.fails(p.ProgressDeadline())
		if reason != "" && at.After(p.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// fails is when what is tried again and again on the machine counts, and why; "" when it
// does not by time alone. Of a drain nothing is known from the time on at which it may be
// tried again: until then it was blocked, and after that other gates may hold the machine.
func (m *Machine) fails(deadline time.Duration) (at time.Time, reason string) {
	if f := m.Status.RolloutFailure; f != nil && f.Class == ClassDrainBlocked && f.FirstTime != nil {
		at := f.FirstTime.Add(deadline)
		if f.NextRetryTime != nil && f.NextRetryTime.Time.Before(at) {
			return time.Time{}, ""
		}
		return at, f.Reason
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStaged)
	f := m.Status.HostFailure
	if f == nil || f.Terminal || c == nil || c.Status != metav1.ConditionFalse || !CurrentAssignment(m.Machine) {
		return time.Time{}, ""
	}
	return c.LastTransitionTime.Add(deadline), f.Reason
}

// UnhealthyInARow are the machines of the last two operations of the pool, where both of
// them did not get well afterwards, and nobody has seen to that. They are found once for a reading.
func (p *Pool) UnhealthyInARow() []string { return p.inARow.or(p.findUnhealthyInARow) }

func (p *Pool) findUnhealthyInARow() []string {
	if !p.hasUnwell() {
		return nil
	}
	type ending struct {
		at      time.Time
		machine string
		unwell  bool
	}
	var all []ending
	for _, m := range p.Machines {
		if f := m.Status.RolloutFailure; f != nil && f.Class == ClassUnhealthyAfter && m.Slot != nil && m.Slot.AppliedTime != nil {
			all = append(all, ending{m.Slot.AppliedTime.Time, m.Name, true})
		}
		for _, h := range m.Status.History {
			if h.EndTime != nil && h.Reason != ClassUnhealthyAfter { // that a person has seen to
				all = append(all, ending{h.EndTime.Time, m.Name, false})
			}
		}
	}
	slices.SortFunc(all, func(a, b ending) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.machine, b.machine)) })
	if len(all) < 2 || !all[0].unwell || !all[1].unwell {
		return nil
	}
	return []string{all[1].machine, all[0].machine}
}

// hasUnwell says that an operation has ended after which its machine did not get well.
func (p *Pool) hasUnwell() bool {
	return slices.ContainsFunc(p.Machines, func(m *Machine) bool {
		f := m.Status.RolloutFailure
		return f != nil && f.Class == ClassUnhealthyAfter
	})
}

// aftermath is how long after an operation a node that goes down may have gone because of it.
const aftermath = 10 * time.Minute

// WentDown are the machines of the pool that are not worked on and whose nodes went down
// while others were, or shortly after: the rollout may have taken them along. They are
// found once for a reading; one that is given a slot on it is worked on from then on.
func (p *Pool) WentDown() []*Machine {
	down, workedOn := p.wentDown.or(p.findWentDown), func(m *Machine) bool { return m.Slot != nil }
	if !slices.ContainsFunc(down, workedOn) {
		return down
	}
	return slices.DeleteFunc(slices.Clone(down), workedOn)
}

func (p *Pool) findWentDown() []*Machine {
	var out []*Machine
	for _, m := range p.Machines {
		n := m.Node
		if m.Slot == nil && !m.OutOfService() && n != nil && !n.Ready && p.workedOnAt(n.NotReadySince.Time) {
			out = append(out, m)
		}
	}
	return out
}

func (p *Pool) workedOnAt(t time.Time) bool {
	return slices.ContainsFunc(p.Machines, func(m *Machine) bool {
		if m.Slot != nil && !t.Before(m.Slot.ReservedTime.Time) && !m.Slot.ReservedTime.IsZero() {
			return true
		}
		return slices.ContainsFunc(m.Status.History, func(h v1alpha1.HistoryEntry) bool {
			return h.StartTime != nil && h.EndTime != nil && !t.Before(h.StartTime.Time) && !t.After(h.EndTime.Add(aftermath))
		})
	})
}
