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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fleets are read on a Saturday at 12:00 UTC, which is 14:00 in Berlin.
func windows(all ...v1alpha1.Window) func(*v1alpha1.MachineDeployment) {
	return rolling(func(r *v1alpha1.RollingUpdate) { r.Windows = all })
}

func opens(schedule string, d time.Duration) v1alpha1.Window {
	return v1alpha1.Window{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: "Europe/Berlin"}
}

// took are ended operations of the machine that lasted that long each, half of it draining.
func took(each ...time.Duration) Edit {
	return Of(func(m *v1alpha1.Machine) {
		for _, d := range each {
			m.Status.History = append(m.Status.History, v1alpha1.HistoryEntry{State: v1alpha1.OperationSuccessful, Phases: []v1alpha1.PhaseDuration{
				{Name: "Wait", Duration: metav1.Duration{Duration: 24 * time.Hour}},
				{Name: "Drain", Duration: metav1.Duration{Duration: d / 2}}, {Name: "Apply", Duration: metav1.Duration{Duration: d - d/2}},
			}})
		}
	})
}

func TestGrantsAreGivenWithinWindowsAndWhenTheyFit(t *testing.T) {
	early, afternoon := opens("0 22 * * 1-5", 6*time.Hour), opens("0 12 * * *", 3*time.Hour) // an hour of it is left
	base := func(w ...v1alpha1.Window) *Builder {
		return New().Machine("cp1", "", plane).Deployment("w", windows(w...)).Machine("w2", "w", worker)
	}
	restarts := Plans(v1alpha1.DisruptionRestart)
	for name, tc := range map[string]struct {
		fleet  *Builder
		reason string // "" passes
		says   []string
	}{
		"in a window":      {fleet: base(afternoon).Machine("w1", "w", worker)},
		"in one of two":    {fleet: base(early, afternoon).Machine("w1", "w", worker)},
		"outside of it":    {base(early).Machine("w1", "w", worker), gates.ReasonOutsideWindow, []string{"MachineDeployment w", "2030-06-03T22:00:00+02:00 (Europe/Berlin)"}},
		"a restart too":    {base(early).Machine("w1", "w", worker, restarts), gates.ReasonOutsideWindow, nil},
		"a machine down":   {base(early).Machine("w1", "w", worker, NotReady), gates.ReasonOutsideWindow, nil},
		"an unknown zone":  {base(v1alpha1.Window{Schedule: "* * * * *", Duration: early.Duration, TimeZone: "Europe/Atlantis"}).Machine("w1", "w", worker), gates.ReasonWindowInvalid, []string{"MachineDeployment w", "windows[0]", "Europe/Atlantis"}},
		"no pool":          {fleet: base(early).Machine("w1", "", worker)},
		"what fits":        {fleet: base(afternoon).Machine("w1", "w", worker, took(time.Hour))},
		"what does not":    {base(afternoon).Machine("w1", "w", worker, took(time.Hour+time.Second)), gates.ReasonWindowTooShort, []string{"1 operation", "1h0m1s", "closes at 2030-06-01T15:00:00+02:00", "2030-06-02T12:00:00+02:00 (Europe/Berlin)"}},
		"by its neighbour": {base(afternoon).Machine("w1", "w", worker).Machine("w3", "w", worker, took(2*time.Hour)), gates.ReasonWindowTooShort, nil},
		"by its own where that is longer": {
			base(afternoon).Machine("w1", "w", worker, took(2*time.Hour)).Machine("w3", "w", worker, took(1, 1, 1, 1, 1)).
				Machine("w4", "w", worker, took(1, 1, 1, 1, 1)).Machine("w5", "w", worker, took(1, 1, 1, 1, 1)), gates.ReasonWindowTooShort, []string{"2h0m0s"}},
		"one of ten may be longer": {
			fleet: base(afternoon).Machine("w1", "w", worker).Machine("w3", "w", worker, took(time.Minute, time.Minute, time.Minute, time.Minute, time.Minute)).
				Machine("w4", "w", worker, took(time.Minute, time.Minute, time.Minute, time.Minute, 2*time.Hour))},
		"another pool tells nothing":       {fleet: base(afternoon).Machine("w1", "w", worker).Deployment("x").Machine("x1", "x", worker, took(2*time.Hour))},
		"a restart is no drain":            {fleet: base(afternoon).Machine("w1", "w", worker, restarts, took(2*time.Hour))},
		"what failed tells nothing":        {fleet: base(afternoon).Machine("w1", "w", worker, took(2*time.Hour), Of(func(m *v1alpha1.Machine) { m.Status.History[0].State = v1alpha1.OperationFailed }))},
		"too long for any, late in it":     {base(afternoon).Machine("w1", "w", worker, took(4*time.Hour)), gates.ReasonWindowTooShort, []string{"first half of a longest one, of 3h0m0s", "2030-06-02T12:00:00+02:00"}},
		"too long for any, early in it":    {fleet: base(opens("0 13 * * *", 3*time.Hour)).Machine("w1", "w", worker, took(4*time.Hour))},
		"too long for any, in a short one": {base(opens("0 14 * * *", time.Hour), opens("0 22 * * *", 2*time.Hour)).Machine("w1", "w", worker, took(4*time.Hour)), gates.ReasonWindowTooShort, []string{"2030-06-01T22:00:00+02:00"}},
		"too long for any, outside":        {base(early).Machine("w1", "w", worker, took(8*time.Hour)), gates.ReasonOutsideWindow, []string{"it takes 8h0m0s and no window is longer than 6h0m0s, so it will run over"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.fleet.Build()
			v := judgedBy(t, f, "w1", "window")
			if tc.reason == "" {
				require.Nil(t, v, "%+v", v)
				return
			}
			require.NotNil(t, v)
			assert.Equal(t, tc.reason, v.Reason)
			for _, text := range tc.says {
				assert.Contains(t, v.Message, text)
			}
		})
	}
}

// judgedBy is the verdict of one gate.
func judgedBy(t *testing.T, f *fleet.Fleet, machine, gate string) *gates.Verdict {
	t.Helper()
	for _, g := range gates.All {
		if g.Name == gate {
			return g.Judge(f, f.Find(machine))
		}
	}
	require.Fail(t, "there is no gate "+gate)
	return nil
}

func TestAWindowThatClosesTakesBackASlotAndOneThatIsTooShortDoesNot(t *testing.T) {
	at := func(w v1alpha1.Window) *gates.Verdict {
		f := New().Machine("cp1", "", plane).Deployment("w", windows(w)).Machine("w1", "w", worker, InSlot(v1alpha1.DisruptionDrain), took(2*time.Hour)).Build()
		return gates.Withdrawn(f, f.Find("w1"))
	}
	assert.Nil(t, at(opens("0 12 * * *", 3*time.Hour)), "a drain that takes its time is not undone for what is left of the window")
	v := at(opens("0 22 * * *", 3*time.Hour))
	require.NotNil(t, v)
	assert.Equal(t, gates.ReasonOutsideWindow, v.Reason)
}
