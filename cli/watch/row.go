package watch

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// class is where a machine stands in the table: what needs a person first, what needs nobody last.
type class int

const (
	failed class = iota
	atWork
	waiting
	done
)

var classNames = [...]string{failed: "failed", atWork: "at work", waiting: "waiting", done: "up to date"}

// row is one machine as the table shows it.
type row struct {
	machine *v1alpha1.Machine
	class   class
	phase   string
	kubelet string
	says    string
	// blocked is why its drain does not end, "" for none.
	blocked string
}

// rowOf sums a machine up; slot is whether it holds a place.
func rowOf(m *v1alpha1.Machine, slot bool) row {
	r := row{machine: m, phase: string(m.Status.Phase), says: clean(status.WaitsFor(m, status.Coordinator{Known: false}))}
	if !m.DeletionTimestamp.IsZero() {
		r.phase = "Deleting"
	}
	r.phase = clean(cmp.Or(r.phase, string(v1alpha1.PhasePending)))
	if v := m.Status.Versions; v != nil {
		r.kubelet = clean(v.Kubelet)
	}
	r.class, r.blocked = classOf(m, slot), clean(blockedDrain(m))
	return r
}

func classOf(m *v1alpha1.Machine, slot bool) class {
	working := []v1alpha1.Phase{
		v1alpha1.PhaseDraining, v1alpha1.PhaseApplying, v1alpha1.PhaseRebooting, v1alpha1.PhaseVerifying,
		v1alpha1.PhaseSoaking, v1alpha1.PhaseRollingBack,
	}
	switch phase := m.Status.Phase; {
	case upgrade.Failed(m), phase == v1alpha1.PhaseFailed, phase == v1alpha1.PhaseUnknown:
		return failed
	case slot, slices.Contains(working, phase):
		return atWork
	case upToDate(m):
		return done
	}
	return waiting
}

// upToDate counts only what was judged by the spec as it is now.
func upToDate(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
}

// blockedDrain is why the drain of a machine does not end: that of the last try, or of the one that goes on.
func blockedDrain(m *v1alpha1.Machine) string {
	if f := m.Status.RolloutFailure; f != nil && f.Class == upgrade.ClassDrainBlocked {
		return f.Reason + ": " + f.Message
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained); c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "is blocked since") {
		return c.Reason + ": " + c.Message
	}
	return ""
}
