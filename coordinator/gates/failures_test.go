package gates_test

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	. "github.com/refit-dev/refit/coordinator/fleet/fleettest"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: Now.Add(-d)} }

func failing(class string) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: class, Failure: v1alpha1.Failure{Reason: "Because"}}
	})
}

// blockedFor is a drain that has been blocked for so long, and is not tried before a minute has passed.
func blockedFor(d time.Duration) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.RolloutFailure = drainBlocked(time.Minute)
		m.Status.RolloutFailure.FirstTime = ago(d)
	})
}

// blockedUntil is a drain that was blocked first so long ago, and could be tried again since so long.
func blockedUntil(first, next time.Duration) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.RolloutFailure = drainBlocked(-next)
		m.Status.RolloutFailure.FirstTime = ago(first)
	})
}

// unstagedFor is a host that cannot get its packages for so long.
func unstagedFor(d time.Duration, terminal bool) Edit {
	return Of(func(m *v1alpha1.Machine) {
		m.Status.HostFailure = &v1alpha1.Failure{Reason: "RepoUnreachable", Terminal: terminal}
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStaged, Status: metav1.ConditionFalse, LastTransitionTime: *ago(d)}}
	})
}

func TestEachClassOfFailureCountsInItsTime(t *testing.T) {
	percent := intstr.FromString("50%")
	threshold := func(v *intstr.IntOrString) func(*v1alpha1.MachineDeployment) {
		return rolling(func(r *v1alpha1.RollingUpdate) { r.FailureThreshold = v })
	}
	hasty := func(d *v1alpha1.MachineDeployment) { d.Spec.ProgressDeadline = &metav1.Duration{Duration: time.Minute} }
	base := func(edits ...func(*v1alpha1.MachineDeployment)) *Builder {
		return New().Machine("cp1", "", plane).Deployment("w", edits...).Machine("w1", "w", worker)
	}
	out := Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService })
	for name, tc := range map[string]struct {
		fleet *Builder
		says  string // "" passes
	}{
		"nothing failed":                             {base(), ""},
		"an operation that failed":                   {base().Machine("w2", "w", worker, failing(fleet.ClassApplyFailed)), "1 failed: w2 (Because)"},
		"one that was rolled back":                   {base().Machine("w2", "w", worker, failing(fleet.ClassRolledBack)), "w2"},
		"a host that was lost":                       {base().Machine("w2", "w", worker, failing(fleet.ClassUnreachable)), "w2"},
		"one that does not get well":                 {base().Machine("w2", "w", worker, failing(fleet.ClassUnhealthyAfter)), "w2"},
		"one that is out of service since":           {base().Machine("w2", "w", worker, failing(fleet.ClassApplyFailed), out), ""},
		"a drain that is blocked":                    {base().Machine("w2", "w", worker, blockedFor(59*time.Minute)), ""},
		"for longer than the deadline":               {base().Machine("w2", "w", worker, blockedFor(time.Hour)), "w2 (EvictionBlocked)"},
		"for longer than a shorter one":              {base(hasty).Machine("w2", "w", worker, blockedFor(time.Minute)), "w2"},
		"one of which nobody knows since when":       {base(hasty).Machine("w2", "w", worker, Of(func(m *v1alpha1.Machine) { m.Status.RolloutFailure = drainBlocked(time.Minute) })), ""},
		"one that nobody has tried again since":      {base().Machine("w2", "w", worker, blockedUntil(24*time.Hour, 24*time.Hour-time.Minute)), ""},
		"one that was tried until it counted":        {base().Machine("w2", "w", worker, blockedUntil(24*time.Hour, 23*time.Hour)), "w2"},
		"packages that cannot be had":                {base().Machine("w2", "w", worker, unstagedFor(59*time.Minute, false)), ""},
		"that cannot be had for long":                {base().Machine("w2", "w", worker, unstagedFor(time.Hour, false)), "w2 (RepoUnreachable)"},
		"a host that refuses for good has not begun": {base().Machine("w2", "w", worker, unstagedFor(time.Hour, true)), ""},
		"one of a threshold of two":                  {base(threshold(at(2))).Machine("w2", "w", worker, failing(fleet.ClassApplyFailed)), ""},
		"two of two":                                 {base(threshold(at(2))).Machine("w2", "w", worker, failing(fleet.ClassApplyFailed)).Machine("w3", "w", worker, blockedFor(time.Hour)), "2 failed: w2 (Because), w3 (EvictionBlocked)"},
		"two of half of five":                        {base(threshold(&percent)).Machine("w2", "w", worker, failing("ApplyFailed")).Machine("w3", "w", worker, failing("ApplyFailed")).Machine("w4", "w", worker).Machine("w5", "w", worker), "2 failed"},
		"one of half of five":                        {base(threshold(&percent)).Machine("w2", "w", worker, failing("ApplyFailed")).Machine("w3", "w", worker).Machine("w4", "w", worker).Machine("w5", "w", worker), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := judgedBy(t, f, "w1", "failure-threshold")
			if tc.says == "" {
				require.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, gates.ReasonFailureThreshold, v.Reason)
			assert.Contains(t, v.Message, tc.says)
		})
	}
}

func TestTwoInARowThatDoNotGetWellPauseThePool(t *testing.T) {
	unwell := func(since time.Duration) Edit {
		return func(m *v1alpha1.Machine, _ *corev1.Node, l *v1alpha1.LedgerSpec) {
			m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassUnhealthyAfter}
			l.Slots = append(l.Slots, v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), AppliedTime: ago(since)})
		}
	}
	ended := func(reason string, since time.Duration) Edit {
		return Of(func(m *v1alpha1.Machine) {
			m.Status.History = []v1alpha1.HistoryEntry{{State: v1alpha1.OperationSuccessful, Reason: reason, EndTime: ago(since)}}
		})
	}
	base := func() *Builder {
		return New().Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) { r.FailureThreshold = at(9) })).Machine("w1", "w", worker)
	}
	for name, tc := range map[string]struct {
		fleet *Builder
		want  bool
	}{
		"one":                         {base().Machine("w2", "w", worker, unwell(time.Hour)), false},
		"two":                         {base().Machine("w2", "w", worker, unwell(time.Hour)).Machine("w3", "w", worker, unwell(time.Minute)), true},
		"two, and one well long ago":  {base().Machine("w2", "w", worker, unwell(time.Hour)).Machine("w3", "w", worker, unwell(time.Minute)).Machine("w4", "w", worker, ended("", 2*time.Hour)), true},
		"one between them got well":   {base().Machine("w2", "w", worker, unwell(time.Hour)).Machine("w3", "w", worker, unwell(time.Minute)).Machine("w4", "w", worker, ended("", 30*time.Minute)), false},
		"those that a person saw to":  {base().Machine("w2", "w", worker, ended(fleet.ClassUnhealthyAfter, time.Hour)).Machine("w3", "w", worker, ended(fleet.ClassUnhealthyAfter, time.Minute)), false},
		"one of them a person saw to": {base().Machine("w2", "w", worker, ended(fleet.ClassUnhealthyAfter, time.Hour)).Machine("w3", "w", worker, unwell(time.Minute)), false},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgedBy(t, tc.fleet.Build(), "w1", "failure-threshold")
			assert.Equal(t, tc.want, v != nil, "%+v", v)
			if v != nil {
				assert.Contains(t, v.Message, "w2, w3")
			}
		})
	}
}

func TestMachinesThatGoDownBesideTheRolloutHoldItUp(t *testing.T) {
	down := func(since time.Duration) Edit {
		return func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
			n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, *ago(since)
		}
	}
	inWorkFor := func(d time.Duration) Edit {
		return func(m *v1alpha1.Machine, _ *corev1.Node, l *v1alpha1.LedgerSpec) {
			l.Slots = append(l.Slots, v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), ReservedTime: *ago(d)})
		}
	}
	worked := func(from, to time.Duration) Edit {
		return Of(func(m *v1alpha1.Machine) {
			m.Status.History = []v1alpha1.HistoryEntry{{StartTime: ago(from), EndTime: ago(to)}}
		})
	}
	out := Of(func(m *v1alpha1.Machine) { m.Spec.Availability = v1alpha1.AvailabilityOutOfService })
	base := func(threshold int32) *Builder {
		return New().Deployment("w", rolling(func(r *v1alpha1.RollingUpdate) { r.FailureThreshold = at(threshold) })).Machine("w1", "w", worker)
	}
	for name, tc := range map[string]struct {
		fleet *Builder
		want  bool
	}{
		"down while another is worked on":     {base(1).Machine("w2", "w", worker, inWorkFor(time.Hour)).Machine("w3", "w", worker, down(time.Minute)), true},
		"shortly after that has ended":        {base(1).Machine("w2", "w", worker, worked(time.Hour, 40*time.Minute)).Machine("w3", "w", worker, down(31*time.Minute)), true},
		"long after":                          {base(1).Machine("w2", "w", worker, worked(time.Hour, 40*time.Minute)).Machine("w3", "w", worker, down(29*time.Minute)), false},
		"the very one that was worked on":     {base(1).Machine("w2", "w", worker, worked(time.Hour, 10*time.Minute), down(5*time.Minute)), true},
		"down before the rollout":             {base(1).Machine("w2", "w", worker, inWorkFor(time.Hour)).Machine("w3", "w", worker, down(2*time.Hour)), false},
		"being worked on itself":              {base(1).Machine("w2", "w", worker, inWorkFor(time.Hour), down(time.Minute)), false},
		"out of service":                      {base(1).Machine("w2", "w", worker, inWorkFor(time.Hour)).Machine("w3", "w", worker, down(time.Minute), out), false},
		"of another pool":                     {base(1).Machine("w2", "w", worker, inWorkFor(time.Hour)).Deployment("x").Machine("x1", "x", worker, down(time.Minute)), false},
		"fewer than the pool bears":           {base(2).Machine("w2", "w", worker, inWorkFor(time.Hour)).Machine("w3", "w", worker, down(time.Minute)), false},
		"as many as it bears":                 {base(2).Machine("w2", "w", worker, inWorkFor(time.Hour)).Machine("w3", "w", worker, down(time.Minute)).Machine("w4", "w", worker, down(time.Minute)), true},
		"the machine itself may be worked on": {New().Deployment("w").Machine("w1", "w", worker, down(time.Minute)).Machine("w2", "w", worker, inWorkFor(time.Hour)), false},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgedBy(t, tc.fleet.Build(), "w1", "degraded")
			assert.Equal(t, tc.want, v != nil, "%+v", v)
			if v != nil {
				assert.Equal(t, gates.ReasonFleetDegraded, v.Reason)
				assert.Contains(t, v.Message, "not ready since 2030-06-01T")
			}
		})
	}
}

func TestARolloutThatPausedItselfWantsBackTheSlotsThatHaveNoGrantYet(t *testing.T) {
	granted := func(m *v1alpha1.Machine, _ *corev1.Node, l *v1alpha1.LedgerSpec) {
		l.Slots = append(l.Slots, v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), GrantID: "g-" + m.Name, State: v1alpha1.SlotGranted})
	}
	emptied := func(m *v1alpha1.Machine, _ *corev1.Node, l *v1alpha1.LedgerSpec) {
		l.Slots = append(l.Slots, v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), State: v1alpha1.SlotReserved, DrainsOnly: true})
	}
	pool := func(edit func(*v1alpha1.RollingUpdate)) *Builder {
		return New().Deployment("w", rolling(edit)).Deployment("x").
			Machine("w1", "w", worker, Failed).Machine("w2", "w", worker, InSlot(v1alpha1.DisruptionDrain)).
			Machine("w3", "w", worker, granted).Machine("w4", "w", worker, emptied).Machine("w5", "w", worker).
			Machine("x1", "x", worker, InSlot(v1alpha1.DisruptionDrain))
	}
	for name, tc := range map[string]struct {
		edit   func(*v1alpha1.RollingUpdate)
		reason string // of w2; "" keeps it
	}{
		"the threshold is reached": {func(*v1alpha1.RollingUpdate) {}, gates.ReasonFailureThreshold},
		"it is not":                {func(r *v1alpha1.RollingUpdate) { r.FailureThreshold = at(2) }, ""},
		"a canary failed": {func(r *v1alpha1.RollingUpdate) {
			r.FailureThreshold, r.Canary = at(2), &v1alpha1.Canary{Count: 1}
		}, gates.ReasonCanaryFailed},
	} {
		t.Run(name, func(t *testing.T) {
			halts := gates.Halts(pool(tc.edit).Build())
			if tc.reason == "" {
				assert.Empty(t, halts)
				return
			}
			assert.Len(t, halts, 1)
			assert.Equal(t, tc.reason, halts["w2"].Reason)
		})
	}
}
