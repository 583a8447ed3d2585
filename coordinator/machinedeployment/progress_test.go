package machinedeployment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/board"
	"github.com/refit-dev/refit/coordinator/fleet"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func machine(upToDate bool) *fleet.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	if upToDate {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionTrue}}
	}
	return &fleet.Machine{Machine: m}
}

// progressAt is the Progressing condition of a rollout one half of which is done, two
// hours after its last progress, and when it is looked at again.
func progressAt(now time.Time, change func(s *scope)) (metav1.Condition, *scope) {
	last := metav1.NewTime(start)
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	d.Status = v1alpha1.MachineDeploymentStatus{ObservedGeneration: 3, Machines: 2, UpToDate: 1, LastProgressTime: &last}
	s := &scope{read: d, pool: &fleet.Pool{Deployment: d, Machines: []*fleet.Machine{machine(true), machine(false)}}}
	change(s)
	s.deployment = d.DeepCopy()
	count(&s.deployment.Status, s.pool)
	r := &Reconciler{Board: &board.Board{}, Now: func() time.Time { return now }}
	r.noteProgress(s)
	return r.progressing(s), s
}

func TestARolloutWithoutProgressIsReportedAndNothingElse(t *testing.T) {
	second := func(s *scope) *fleet.Machine { return s.pool.Machines[1] }
	slot := func(edit func(*v1alpha1.Slot, *metav1.Time)) func(*scope) {
		return func(s *scope) {
			at := metav1.NewTime(start.Add(110 * time.Minute))
			second(s).Slot = &v1alpha1.Slot{ReservedTime: at}
			edit(second(s).Slot, &at)
		}
	}
	for name, tc := range map[string]struct {
		change func(*scope)
		reason string
	}{
		"for longer than the default": {func(*scope) {}, ReasonDeadlineExceeded},
		"with more time":              {func(s *scope) { s.read.Spec.ProgressDeadline = &metav1.Duration{Duration: 3 * time.Hour} }, ReasonRollingOut},
		"with less":                   {func(s *scope) { s.read.Spec.ProgressDeadline = &metav1.Duration{Duration: time.Minute} }, ReasonDeadlineExceeded},
		"a new spec":                  {func(s *scope) { s.read.Generation = 4 }, ReasonRollingOut},
		"one more is done":            {func(s *scope) { s.read.Status.UpToDate = 0 }, ReasonRollingOut},
		"the first look at it":        {func(s *scope) { s.read.Status.LastProgressTime = nil }, ReasonRollingOut},
		"another try to drain":        {slot(func(*v1alpha1.Slot, *metav1.Time) {}), ReasonDeadlineExceeded},
		"a drain that has ended":      {slot(func(s *v1alpha1.Slot, at *metav1.Time) { s.GrantedTime = at }), ReasonRollingOut},
		"a host that is through":      {slot(func(s *v1alpha1.Slot, at *metav1.Time) { s.AppliedTime = at }), ReasonRollingOut},
		"a zone that is not known": {func(s *scope) {
			s.read.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{Windows: []v1alpha1.Window{{Schedule: "0 22 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Atlantis"}}}}
		}, ReasonWindowInvalid},
		"a check that cannot be compiled": {func(s *scope) {
			s.read.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{Checks: []v1alpha1.Check{{Name: "c", CEL: "pods.all("}}}}
		}, ReasonCheckInvalid},
		"paused":                     {func(s *scope) { s.read.Spec.Paused = true }, ReasonPaused},
		"the rest is out of service": {func(s *scope) { second(s).Spec.Availability = v1alpha1.AvailabilityOutOfService }, ReasonRollingOut},
		"nothing is left to be done": {func(s *scope) { s.pool.Machines[1] = machine(true) }, ReasonComplete},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := progressAt(start.Add(2*time.Hour), tc.change)
			require.Equal(t, tc.reason, c.Reason)
			assert.Equal(t, tc.reason == ReasonDeadlineExceeded || tc.reason == ReasonWindowInvalid || tc.reason == ReasonCheckInvalid, c.Status == metav1.ConditionFalse)
			if tc.reason == ReasonDeadlineExceeded {
				assert.Contains(t, c.Message, "no progress since 2026-03-01T12:00:00Z")
				assert.Contains(t, c.Message, "1 of 2 machines up to date")
			}
			settled := tc.reason == ReasonComplete || tc.reason == ReasonPaused || name == "the rest is out of service"
			assert.Equal(t, settled, s.deployment.Status.LastProgressTime == nil)
		})
	}
}

func TestARolloutIsLookedAtAgainWhenItsDeadlineComes(t *testing.T) {
	_, s := progressAt(start.Add(40*time.Minute), func(*scope) {})
	assert.Equal(t, 20*time.Minute, s.requeue)
	_, s = progressAt(start.Add(40*time.Minute), func(s *scope) { s.read.Spec.Paused = true })
	assert.Zero(t, s.requeue)
}

func TestACompletePoolIsCountedInWords(t *testing.T) {
	for want, machines := range map[string][]*fleet.Machine{
		"the machine is up to date":       {machine(true)},
		"all 2 machines are up to date":   {machine(true), machine(true)},
		"0 of 1 machine up to date":       {machine(false)},
		"no Machine matches the selector": nil,
	} {
		c, _ := progressAt(start, func(s *scope) { s.pool.Machines, s.read.Status.Machines = machines, int32(len(machines)) })
		assert.Equal(t, want, c.Message)
	}
}

func TestAPoolThatHasLostItsMachinesIsPausedUntilItHasSomeAgain(t *testing.T) {
	none := func(s *scope) { s.pool.Machines = nil }
	first, s := progressAt(start, none)
	assert.Equal(t, "False NoMachines", string(first.Status)+" "+first.Reason)
	assert.Contains(t, first.Message, "the rollout is paused")
	again, _ := progressAt(start, func(later *scope) {
		none(later)
		later.read.Status.Machines, later.read.Status.Conditions = s.deployment.Status.Machines, []metav1.Condition{first}
	})
	assert.Equal(t, first.Message, again.Message, "a later look still knows")
}

func TestAnAbortedRolloutSaysWhy(t *testing.T) {
	c, _ := progressAt(start, func(s *scope) {
		s.read.Spec.Paused, s.read.Annotations = true, map[string]string{v1alpha1.AnnotationAbort: "bad kernel"}
	})
	assert.Equal(t, "Unknown Aborted", string(c.Status)+" "+c.Reason)
	assert.Contains(t, c.Message, "aborted (bad kernel)")
	c, _ = progressAt(start.Add(time.Minute), func(s *scope) { s.read.Annotations = map[string]string{v1alpha1.AnnotationAbort: "bad kernel"} })
	assert.Equal(t, ReasonRollingOut, c.Reason, "whoever unpauses it has it go on")
}

func TestARolloutThatPausedItselfSaysSoAndLooksAgainWhenAFailureComesToCount(t *testing.T) {
	blocked := func(since time.Duration) func(*scope) {
		return func(s *scope) {
			d := s.read
			f, err := fleet.Build(fleet.Objects{Now: start, Deployments: []v1alpha1.MachineDeployment{*poolOf(d)}, Machines: []v1alpha1.Machine{
				*inPool("w1", func(m *v1alpha1.Machine) {
					first := metav1.NewTime(start.Add(-since))
					m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassDrainBlocked, FirstTime: &first, Failure: v1alpha1.Failure{Reason: "EvictionBlocked"}}
				}),
				*inPool("w2", func(*v1alpha1.Machine) {}),
			}})
			require.NoError(t, err)
			s.pool = f.Pools["w"]
		}
	}
	c, s := progressAt(start, blocked(40*time.Minute))
	assert.Equal(t, ReasonRollingOut, c.Reason)
	assert.Equal(t, 20*time.Minute, s.requeue)

	c, _ = progressAt(start, blocked(time.Hour))
	assert.Equal(t, metav1.ConditionFalse, c.Status)
	assert.Equal(t, ReasonFailureThreshold, c.Reason)
	assert.Contains(t, c.Message, "w1 (EvictionBlocked)")
}

func poolOf(d *v1alpha1.MachineDeployment) *v1alpha1.MachineDeployment {
	d = d.DeepCopy()
	d.Name, d.Spec.Selector = "w", metav1.LabelSelector{MatchLabels: map[string]string{"pool": "w"}}
	return d
}

func inPool(name string, edit func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "w"}}}
	edit(m)
	return m
}

func TestWaitingForAWindowIsNoLackOfProgress(t *testing.T) {
	for schedule, reason := range map[string]string{"0 22 * * *": ReasonRollingOut, "0 12 * * *": ReasonDeadlineExceeded} {
		c, s := progressAt(start.Add(2*time.Hour), func(s *scope) {
			d := poolOf(s.read)
			d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{
				Windows: []v1alpha1.Window{{Schedule: schedule, Duration: metav1.Duration{Duration: 6 * time.Hour}}},
			}}
			f, err := fleet.Build(fleet.Objects{Now: start.Add(2 * time.Hour), Deployments: []v1alpha1.MachineDeployment{*d}, Machines: []v1alpha1.Machine{
				*inPool("w1", func(*v1alpha1.Machine) {}), *inPool("w2", func(*v1alpha1.Machine) {}),
			}})
			require.NoError(t, err)
			s.pool, s.read.Status.UpToDate = f.Pools["w"], 0
		})
		assert.Equal(t, reason, c.Reason, schedule)
		assert.Equal(t, reason == ReasonRollingOut, s.deployment.Status.LastProgressTime == nil, schedule)
	}
}
