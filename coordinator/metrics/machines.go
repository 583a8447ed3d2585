package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sample is one scrape of one namespace.
type sample struct {
	c         *Collector
	to        chan<- prometheus.Metric
	namespace string
	fleet     *reading
}

func (s *sample) emit(name string, value int, labels ...string) {
	s.c.emit(s.to, name, float64(value), append([]string{s.namespace}, labels...)...)
}

func (s *sample) emitAll(name string, counts map[string]int) {
	for value, n := range bounded(counts) {
		s.emit(name, n, value)
	}
}

// Phases in the order in which a machine passes them. Each pool has a series for each of
// them, also for those in which nobody is: a series that comes and goes is hard to alert on.
var Phases = []v1alpha1.Phase{
	v1alpha1.PhasePending, v1alpha1.PhaseReady, v1alpha1.PhaseOutdated, v1alpha1.PhaseStaging, v1alpha1.PhaseWaiting,
	v1alpha1.PhaseDraining, v1alpha1.PhaseApplying, v1alpha1.PhaseRebooting, v1alpha1.PhaseVerifying, v1alpha1.PhaseSoaking,
	v1alpha1.PhaseRollingBack, v1alpha1.PhaseFailed, v1alpha1.PhaseUnknown, v1alpha1.PhasePaused, v1alpha1.PhaseStandby,
}

func (s *sample) machines() {
	for name, p := range s.fleet.Pools {
		phases, current := map[v1alpha1.Phase]int{}, 0
		for _, m := range p.Machines {
			phases[phaseOf(m)]++
			if UpToDate(m.Machine) {
				current++
			}
		}
		for _, phase := range Phases {
			s.emit(machines, phases[phase], name, string(phase))
		}
		s.emit(machinesUpToDate, current, name)
		if end := firstEnd(p); end != nil {
			s.c.emit(s.to, certificateExpiry, float64(end.Unix()), s.namespace, name)
		}
	}
}

// firstEnd of a certificate in the pool; nil where no host has told.
func firstEnd(p *fleet.Pool) (first *metav1.Time) {
	for _, m := range p.Machines {
		if end := m.Status.CertificateEndTime; end != nil && (first == nil || end.Before(first)) {
			first = end
		}
	}
	return first
}

// phaseOf a machine that nobody has judged yet is Pending.
func phaseOf(m *fleet.Machine) v1alpha1.Phase {
	if !slices.Contains(Phases, m.Status.Phase) {
		return v1alpha1.PhasePending
	}
	return m.Status.Phase
}

// UpToDate counts a condition only when it was judged on the spec as it is now.
func UpToDate(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
}

// reasons counts what machines wait for.
func (s *sample) reasons() {
	waiting, expiring, blocked := map[string]int{}, map[string]int{}, map[string]int{}
	for _, m := range s.fleet.Machines {
		if r := reasonOf(m, v1alpha1.ConditionWaiting, metav1.ConditionTrue); r != "" {
			waiting[r]++
		}
		if r := reasonOf(m, v1alpha1.ConditionCertificatesExpiring, metav1.ConditionTrue); r != "" {
			expiring[r]++
		}
		if r := drainBlocked(m); r != "" {
			blocked[r]++
		}
	}
	s.emitAll(machinesWaiting, waiting)
	s.emitAll(certificates, expiring)
	s.emitAll(drainsBlocked, blocked)
}

func reasonOf(m *fleet.Machine, kind string, status metav1.ConditionStatus) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil && c.Status == status {
		return c.Reason
	}
	return ""
}

// drainBlocked is why the last drain did not end, or why the next one cannot.
func drainBlocked(m *fleet.Machine) string {
	if f := m.Status.RolloutFailure; f != nil && f.Class == fleet.ClassDrainBlocked {
		return f.Reason
	}
	return reasonOf(m, v1alpha1.ConditionForecast, metav1.ConditionFalse)
}
