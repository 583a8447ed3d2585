package machinedeployment

import (
	"fmt"
	"slices"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noteProgress keeps the time of the rollout's last progress: none while there is
// nothing to roll out, a person has paused it, or it waits for a window. A new spec, one more machine that is up
// to date, and each stage that a slot reaches after its drain are progress; trying to
// drain once more is not.
func (r *Reconciler) noteProgress(s *scope) {
	st, before := &s.deployment.Status, &s.read.Status
	if s.deployment.Spec.Paused || settled(s.pool) || awaitsWindow(s.pool) {
		st.LastProgressTime = nil
		return
	}
	last := st.LastProgressTime
	if last == nil || before.ObservedGeneration != s.deployment.Generation || st.UpToDate > before.UpToDate {
		last = &metav1.Time{Time: r.Now()}
	}
	for _, m := range s.pool.Machines {
		if at := newest(m.Slot); at != nil && last.Before(at) {
			last = at
		}
	}
	st.LastProgressTime = last
}

// awaitsWindow says that nothing can go on before a window opens.
func awaitsWindow(p *fleet.Pool) bool {
	if !p.HasWindows() || slices.ContainsFunc(p.Machines, func(m *fleet.Machine) bool { return m.Slot != nil }) {
		return false
	}
	hours, err := p.Hours()
	return err == nil && !hours.Open
}

// settled says that every machine that counts is up to date.
func settled(p *fleet.Pool) bool {
	return !slices.ContainsFunc(p.Machines, func(m *fleet.Machine) bool {
		return !m.OutOfService() && !current(m, v1alpha1.ConditionUpToDate)
	})
}

// newest is when the slot reached its stage, nil before the drain has ended.
func newest(slot *v1alpha1.Slot) *metav1.Time {
	if slot == nil {
		return nil
	}
	at := slot.GrantedTime
	for _, t := range []*metav1.Time{slot.AppliedTime, slot.UncordonedTime} {
		if t != nil && (at == nil || at.Before(t)) {
			at = t
		}
	}
	return at
}

// overdue says since when a rollout has made no progress; "" before its deadline. It asks
// for another look when the deadline comes.
func (r *Reconciler) overdue(s *scope) string {
	last := s.deployment.Status.LastProgressTime
	if last == nil {
		return ""
	}
	deadline := s.pool.ProgressDeadline()
	if left := deadline - r.Now().Sub(last.Time); left > 0 {
		if s.requeue == 0 || left < s.requeue {
			s.requeue = left
		}
		return ""
	}
	return fmt.Sprintf("no progress since %s, for longer than %s", last.UTC().Format(time.RFC3339), deadline)
}
