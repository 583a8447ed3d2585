package dashboard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/api/v1alpha1"
)

const zone = corev1.LabelTopologyZone

var noon = time.Date(2030, 6, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { t := metav1.NewTime(noon.Add(d)); return &t }

func machine(name string, edits ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"pool": "workers"}}}
	m.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
	m.Status.Phase = v1alpha1.PhaseWaiting
	m.Status.Host = &v1alpha1.HostIdentity{MachineID: name}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: "v1.37.1"}
	for _, edit := range edits {
		edit(m)
	}
	return m
}

func node(name, domain string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{zone: domain}}}
}

func pool(name string) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Selector.MatchLabels = map[string]string{"pool": "workers"}
	return d
}

func ledger(slots ...v1alpha1.Slot) *v1alpha1.Ledger {
	return &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LedgerName}, Spec: v1alpha1.LedgerSpec{Slots: slots}}
}

func TestARowJoinsMachineNodeAndPool(t *testing.T) {
	f := NewFleet(zone)
	f.Put(node("w1", "a"))
	f.Put(pool("workers"))
	f.Put(machine("w1", func(m *v1alpha1.Machine) {
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "BudgetExhausted", Message: "1 of 1"}}
	}))
	row, there := f.row("w1")
	require.True(t, there)
	assert.Equal(t, Row{Name: "w1", Pool: "workers", Domain: "a", Phase: "Waiting", Version: "v1.37.1", Target: "v1.37.2", Says: "BudgetExhausted: 1 of 1"}, row)
	_, there = f.row("w2")
	assert.False(t, there)
}

func TestARowSaysOfAMachineWhatIsSpecialAboutIt(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.Machine)
		want Row
	}{
		"one that nobody has judged": {func(m *v1alpha1.Machine) { m.Status = v1alpha1.MachineStatus{} },
			Row{Phase: "Pending", Target: "v1.37.2", Says: "AgentSilent: the agent of this host has never reported"}},
		"one that is deleted": {func(m *v1alpha1.Machine) { m.DeletionTimestamp, m.Finalizers = at(0), []string{"x"} },
			Row{Phase: "Deleting", Version: "v1.37.1", Target: "v1.37.2", Says: "Deleting: held by its finalizers x"}},
		"one that has arrived": {func(m *v1alpha1.Machine) { m.Status.Versions.Kubelet, m.Status.Phase = "v1.37.2", v1alpha1.PhaseReady },
			Row{Phase: "Ready", Version: "v1.37.2"}},
		"one of etcd alone": {func(m *v1alpha1.Machine) {
			m.Spec.Versions, m.Status.Versions = &v1alpha1.Versions{Etcd: "v3.7.0"}, &v1alpha1.ObservedVersions{Etcd: "v3.6.4"}
		}, Row{Phase: "Waiting", Version: "v3.6.4", Target: "v3.7.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFleet(zone)
			f.Put(machine("w1", tc.edit))
			got, _ := f.row("w1")
			tc.want.Name = "w1"
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAChangeTouchesOnlyWhatItShowsIn(t *testing.T) {
	full := func() *Fleet {
		f := NewFleet(zone)
		for _, name := range []string{"w1", "w2"} {
			f.Put(machine(name))
			f.Put(node(name, "a"))
		}
		f.Put(pool("workers"))
		f.Put(ledger(v1alpha1.Slot{Machine: "w1"}))
		return f
	}
	progressed := pool("workers")
	progressed.Status.UpToDate = 1
	moved := pool("workers")
	moved.Spec.Selector.MatchLabels = map[string]string{"pool": "others"}
	for name, tc := range map[string]struct {
		do   func(*Fleet) Touched
		want Touched
	}{
		"a heartbeat of a Node":       {func(f *Fleet) Touched { return f.Put(node("w1", "a")) }, Touched{}},
		"a Node in another domain":    {func(f *Fleet) Touched { return f.Put(node("w1", "b")) }, Touched{Machines: []string{"w1"}}},
		"a Node that is gone":         {func(f *Fleet) Touched { return f.Remove(node("w1", "a")) }, Touched{Machines: []string{"w1"}}},
		"a machine":                   {func(f *Fleet) Touched { return f.Put(machine("w1")) }, Touched{Machines: []string{"w1"}}},
		"a new machine":               {func(f *Fleet) Touched { return f.Put(machine("w3")) }, Touched{Machines: []string{"w3"}, Summary: true}},
		"a machine that is gone":      {func(f *Fleet) Touched { return f.Remove(machine("w1")) }, Touched{Machines: []string{"w1"}, Summary: true}},
		"numbers of a pool":           {func(f *Fleet) Touched { return f.Put(progressed) }, Touched{Summary: true}},
		"a pool that selects others":  {func(f *Fleet) Touched { return f.Put(moved) }, Touched{Machines: []string{"w1", "w2"}, Summary: true}},
		"a pool that is gone":         {func(f *Fleet) Touched { return f.Remove(pool("workers")) }, Touched{Machines: []string{"w1", "w2"}, Summary: true}},
		"a slot handed on":            {func(f *Fleet) Touched { return f.Put(ledger(v1alpha1.Slot{Machine: "w2"})) }, Touched{Machines: []string{"w2", "w1"}}},
		"a ledger that is gone":       {func(f *Fleet) Touched { return f.Remove(ledger()) }, Touched{Machines: []string{"w1"}}},
		"a budget, which shows in no": {func(f *Fleet) Touched { return f.Put(&v1alpha1.MachineDisruptionBudget{}) }, Touched{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.do(full())
			assert.ElementsMatch(t, tc.want.Machines, got.Machines)
			assert.Equal(t, tc.want.Summary, got.Summary)
		})
	}
}

func secs(f float64) *float64 { return &f }

func TestTheTimelineHasWhatIsDoneAndWhatWasDone(t *testing.T) {
	worked := machine("w1", func(m *v1alpha1.Machine) {
		m.Status.Assignment = &v1alpha1.Assignment{ID: "a", Type: v1alpha1.OperationUpgrade}
		m.Status.History = []v1alpha1.HistoryEntry{
			{Type: v1alpha1.OperationRepair, State: v1alpha1.OperationFailed, Reason: "HookFailed", StartTime: at(-time.Hour), EndTime: at(-50 * time.Minute), Phases: []v1alpha1.PhaseDuration{
				{Name: "Wait", Duration: metav1.Duration{Duration: time.Minute}}, {Name: "Drain", Duration: metav1.Duration{Duration: 30 * time.Second}},
			}},
			{Type: v1alpha1.OperationUpgrade, State: v1alpha1.OperationSuccessful}, // times unknown: nowhere to draw it
		}
	})
	slot := v1alpha1.Slot{Machine: "w1", MachineUID: "uid-w1", AssignmentID: "a", ReservedTime: *at(-10 * time.Minute)}
	start := noon.Unix()
	before := Bar{Type: "Repair", State: "Failed", Reason: "HookFailed", Start: start - 3660, End: start - 3000, Segments: []Segment{
		{"Wait", 0, secs(60)}, {"Drain", 60, secs(90)}, {"Soak", 90, secs(660)},
	}}
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.Slot)
		want []Segment
		from time.Duration
	}{
		"it drains":         {func(*v1alpha1.Slot) {}, []Segment{{"Drain", 0, nil}}, -10 * time.Minute},
		"it waited, drains": {func(s *v1alpha1.Slot) { s.WaitingTime = at(-12 * time.Minute) }, []Segment{{"Wait", 0, secs(120)}, {"Drain", 120, nil}}, -12 * time.Minute},
		"the host works": {func(s *v1alpha1.Slot) { s.DrainedTime, s.GrantedTime = at(-9*time.Minute), at(-8*time.Minute) },
			[]Segment{{"Drain", 0, secs(60)}, {"Apply", 120, nil}}, -10 * time.Minute},
		"nothing was to be drained": {func(s *v1alpha1.Slot) { s.GrantedTime = at(-8 * time.Minute) },
			[]Segment{{"Drain", 0, secs(120)}, {"Apply", 120, nil}}, -10 * time.Minute},
		"it soaks": {func(s *v1alpha1.Slot) {
			s.DrainedTime, s.GrantedTime, s.AppliedTime, s.UncordonedTime = at(-9*time.Minute), at(-9*time.Minute), at(-5*time.Minute), at(-4*time.Minute)
		}, []Segment{{"Drain", 0, secs(60)}, {"Apply", 60, secs(300)}, {"Ready", 300, secs(360)}, {"Soak", 360, nil}}, -10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := NewFleet(zone), slot
			tc.edit(&s)
			f.Put(worked)
			f.Put(ledger(s))
			row, _ := f.row("w1")
			now := Bar{Type: "Upgrade", State: "Processing", Start: noon.Add(tc.from).Unix(), Segments: tc.want}
			assert.Equal(t, []Bar{now, before}, row.Work)
		})
	}
	t.Run("a slot of an earlier machine of that name is not its work", func(t *testing.T) {
		f, s := NewFleet(zone), slot
		s.MachineUID = "another"
		f.Put(worked)
		f.Put(ledger(s))
		row, _ := f.row("w1")
		assert.Equal(t, []Bar{before}, row.Work)
	})
}

func TestTheSummarySaysHowPoolsStand(t *testing.T) {
	f := NewFleet(zone)
	d := pool("workers")
	d.Generation, d.Status.ObservedGeneration = 2, 1
	f.Put(d)
	f.Put(ledger())
	stopped := ledger()
	stopped.Spec.Stopped = true
	assert.True(t, f.Put(stopped).Summary)
	s := f.summary()
	assert.True(t, s.Stopped)
	require.Len(t, s.Pools, 1)
	assert.Equal(t, "NotSeen: no coordinator has judged the newest edit yet", s.Pools[0].State)
	d.Status.ObservedGeneration = 2
	d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "RollingOut", Message: "1 of 3"}}
	assert.Equal(t, "RollingOut: 1 of 3", f.summary().Pools[0].State)
	d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionConflict, Status: metav1.ConditionTrue, Reason: "DeploymentConflict", Message: "others"})
	assert.Equal(t, "DeploymentConflict: others", f.summary().Pools[0].State)
}
