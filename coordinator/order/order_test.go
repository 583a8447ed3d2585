package order_test

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/order"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	worker = v1alpha1.RoleWorker
	plane  = v1alpha1.RoleControlPlane
)

func waitingFor(d time.Duration) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(Now.Add(-d)),
		})
	})
}

func TestTheControlPlaneTheDownTheLeastDisruptiveTheLongestWaitingThenTheName(t *testing.T) {
	f := New().
		Machine("a", "", worker).
		Machine("b", "", worker).
		Machine("c", "", worker, waitingFor(time.Minute)).
		Machine("d", "", worker, waitingFor(time.Hour)).
		Machine("e", "", worker, Plans(v1alpha1.DisruptionRestart)).
		Machine("f", "", worker, NotReady).
		Machine("z", "", plane).
		Build()
	var names []string
	for _, m := range order.Candidates(f) {
		names = append(names, m.Name)
	}
	assert.Equal(t, []string{"z", "f", "e", "d", "c", "a", "b"}, names)
}

func TestOnlyAMachineWithAStagedPlanForItsSpecIsACandidate(t *testing.T) {
	for name, edit := range map[string]Edit{
		"no plan":                         Of(func(m *v1alpha1.Machine) { m.Status.Plan = nil }),
		"a plan that is not frozen":       Of(func(m *v1alpha1.Machine) { m.Status.Plan.Hash = "" }),
		"a plan for another assignment":   Of(func(m *v1alpha1.Machine) { m.Status.Plan.AssignmentID = "other" }),
		"an assignment for an older spec": Of(func(m *v1alpha1.Machine) { m.Generation = 2 }),
		"not staged":                      Of(func(m *v1alpha1.Machine) { m.Status.Conditions = nil }),
		"a finding that blocks":           Of(func(m *v1alpha1.Machine) { m.Status.Plan.Findings = []v1alpha1.Finding{{Severity: "Error"}} }),
		"a slot already":                  InSlot(v1alpha1.DisruptionNone),
		"failed":                          Failed,
		"refused by the host":             Of(func(m *v1alpha1.Machine) { m.Status.HostFailure = &v1alpha1.Failure{Terminal: true} }),
		"out of service":                  Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService }),
		"being deleted":                   Of(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: Now} }),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, order.Candidates(New().Machine("w1", "", worker, edit).Build()))
		})
	}
	assert.Len(t, order.Candidates(New().Machine("w1", "", worker).Build()), 1, "and nothing else is asked")
}

func TestTheLongestByMeasurementGoesFirstAndTheRestByThePoolsMiddle(t *testing.T) {
	took := func(each ...time.Duration) Edit {
		return Of(func(m *v1alpha1.Machine) {
			for _, d := range each {
				m.Status.History = append(m.Status.History, v1alpha1.HistoryEntry{State: v1alpha1.OperationSuccessful,
					Phases: []v1alpha1.PhaseDuration{{Name: "Wait", Duration: metav1.Duration{Duration: time.Hour}}, {Name: "Drain", Duration: metav1.Duration{Duration: d}}}})
			}
		})
	}
	f := New().Deployment("w").
		Machine("a", "w", worker, took(time.Minute)).
		Machine("b", "w", worker, took(9*time.Minute, 5*time.Minute, 7*time.Minute)).
		Machine("c", "w", worker).
		Machine("d", "w", worker, took(6*time.Minute)).
		Machine("e", "w", worker, waitingFor(time.Hour)).
		Machine("f", "w", worker, took(time.Hour), Plans(v1alpha1.DisruptionRestart)).
		Build()
	var names []string
	for _, m := range order.Candidates(f) {
		names = append(names, m.Name)
	}
	assert.Equal(t, []string{"f", "b", "e", "c", "d", "a"}, names, "f restarts only; of the six that drained the middle is seven minutes")
}

func TestTheLeadersOwnNodeIsTheLastThatIsEmptied(t *testing.T) {
	names := func(own string, edits ...Edit) []string {
		f := New().Machine("a", "", worker, edits...).Machine("b", "", worker).Machine("c", "", worker, NotReady).Machine("p", "", plane).Build()
		f.Own = own
		var out []string
		for _, m := range order.Candidates(f) {
			out = append(out, m.Name)
		}
		return out
	}
	assert.Equal(t, []string{"p", "c", "a", "b"}, names(""))
	assert.Equal(t, []string{"p", "c", "b", "a"}, names("a"))
	assert.Equal(t, []string{"p", "c", "b", "a"}, names("a", waitingFor(time.Hour)), "whoever has waited longest")
	assert.Equal(t, []string{"p", "a", "b", "c"}, names("c"), "whoever is down")
	assert.Equal(t, []string{"p", "c", "a", "b"}, names("p"), "the control plane goes before the workers in any case")
	assert.Equal(t, []string{"p", "c", "a", "b"}, names("a", Plans(v1alpha1.DisruptionRestart)), "what moves no pods is like any other")
}
