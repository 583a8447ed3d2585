package watch_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/watch"
)

var update = flag.Bool("update", false, "write the golden frames anew")

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func condition(kind string, s metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: s, Reason: reason, Message: message}
}

func workers(status string, ok metav1.ConditionStatus, edits ...func(*v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	d.Spec.Selector.MatchLabels = map[string]string{"pool": "workers"}
	d.Spec.Template.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
	d.Status.Conditions = []metav1.Condition{condition("Progressing", ok, status, "one after another")}
	for _, e := range edits {
		e(d)
	}
	return d
}

func machine(name string, phase v1alpha1.Phase, kubelet string, edits ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"pool": "workers"}}}
	m.Status.Phase, m.Status.Host = phase, &v1alpha1.HostIdentity{MachineID: name}
	m.Status.Versions = &v1alpha1.ObservedVersions{Kubelet: kubelet}
	current, reason := metav1.ConditionFalse, "Outdated"
	if kubelet == "v1.37.2" {
		current, reason = metav1.ConditionTrue, "UpToDate"
	}
	m.Status.Conditions = []metav1.Condition{condition("UpToDate", current, reason, "kubelet "+kubelet)}
	for _, e := range edits {
		e(m)
	}
	return m
}

func says(kind, reason, message string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, condition(kind, metav1.ConditionTrue, reason, message))
	}
}

func took(d time.Duration) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.History = []v1alpha1.HistoryEntry{{ID: "g", State: v1alpha1.OperationSuccessful, Phases: []v1alpha1.PhaseDuration{
			{Name: "Wait", Duration: metav1.Duration{Duration: time.Hour}}, {Name: "Drain", Duration: metav1.Duration{Duration: d}},
		}}}
	}
}

func blocked(m *v1alpha1.Machine) {
	m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "DrainBlocked", Failure: v1alpha1.Failure{Reason: "EvictionBlocked", Message: "pod shop/web-0: budget web allows 0 disruptions"}}
}

func event(about, reason, message string, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: about + reason}, Reason: reason, Message: message, EventTime: metav1.NewMicroTime(at),
		InvolvedObject: corev1.ObjectReference{Kind: "Machine", Name: about},
	}
}

// fleet is so many machines in the middle of a rollout.
func fleet(n int) []watch.Change {
	changes := []watch.Change{{Object: workers("RollingOut", metav1.ConditionTrue), First: true}}
	for i := range n {
		name := fmt.Sprintf("worker-%d", i+1)
		m := machine(name, v1alpha1.PhaseWaiting, "v1.36.3", says("Waiting", "BudgetExhausted", "1 of 1 machines are unavailable: worker-2"))
		switch {
		case i == 0:
			m = machine(name, v1alpha1.PhaseFailed, "v1.36.3", says("Stalled", "VersionNotFound", "no source of this host has kubelet 1.37.2"), func(m *v1alpha1.Machine) {
				m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: "ApplyFailed", Failure: v1alpha1.Failure{Reason: "VersionNotFound"}}
			})
		case i == 1:
			m = machine(name, v1alpha1.PhaseApplying, "v1.36.3", func(m *v1alpha1.Machine) {
				m.Status.LastOperation = &v1alpha1.Operation{ID: "g2", State: v1alpha1.OperationProcessing, Step: "InstallPackages", StepsDone: 3, StepsTotal: 9}
			})
		case i == 3:
			blocked(m)
		case i > n*2/3 || i == 2 && n == 3:
			m = machine(name, v1alpha1.PhaseReady, "v1.37.2", took(4*time.Minute))
		}
		changes = append(changes, watch.Change{Object: m, First: true})
	}
	ledger := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "refit"}}
	ledger.Spec.Slots = []v1alpha1.Slot{{Machine: "worker-2", ReservedTime: metav1.NewTime(noon.Add(-time.Minute))}}
	return append(changes, watch.Change{Object: ledger, First: true},
		watch.Change{Object: event("worker-1", "VersionNotFound", "no source of this host has kubelet 1.37.2", noon.Add(-3*time.Minute)), First: true},
		watch.Change{Object: event("worker-2", "Drained", "12 pods have left", noon.Add(-time.Minute)), First: true})
}

type deeds struct{ done *[]string }

func (d deeds) Do(verb watch.Verb, target string) tea.Cmd {
	return func() tea.Msg {
		*d.done = append(*d.done, string(verb)+" "+target)
		return watch.Done{Text: target + " done"}
	}
}

func (d deeds) Why(name string) tea.Cmd {
	return func() tea.Msg { return watch.Explained{Machine: name, Text: "held by\nthe budget"} }
}

// desk is a view with somebody at its keys.
type desk struct {
	*testing.T
	model tea.Model
	done  []string
	quit  bool
}

func newDesk(t *testing.T, changes []watch.Change, edits ...func(*watch.Options)) *desk {
	d := &desk{T: t}
	o := watch.Options{Namespace: "refit", Events: 200, Deeds: deeds{&d.done}}
	for _, e := range edits {
		e(&o)
	}
	d.model = watch.New(o)
	d.send(watch.Batch{Changes: changes, Now: noon, Synced: true})
	return d
}

func (d *desk) send(msg tea.Msg) {
	next, cmd := d.model.Update(msg)
	d.model = next
	if cmd == nil {
		return
	}
	answer := cmd()
	if _, is := answer.(tea.QuitMsg); is {
		d.quit = true
		return
	}
	d.send(answer)
}

func (d *desk) press(keys ...string) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp, "pgdown": tea.KeyPgDown, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	for _, key := range keys {
		if code, is := special[key]; is {
			d.send(tea.KeyPressMsg{Code: code})
			continue
		}
		d.send(tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
	}
}

// screen is what is on it, without colours. It fits, whatever is shown.
func (d *desk) screen(width, height int) string {
	d.Helper()
	d.send(tea.WindowSizeMsg{Width: width, Height: height})
	m, is := d.model.(watch.Model)
	require.True(d, is)
	lines := strings.Split(ansi.Strip(m.Frame()), "\n")
	require.Len(d, lines, height)
	for i, line := range lines {
		require.LessOrEqual(d, ansi.StringWidth(line), width, "line %d: %q", i, line)
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (d *desk) golden(name string, width, height int) {
	d.Helper()
	got := d.screen(width, height)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(d, os.MkdirAll("testdata", 0o755))
		require.NoError(d, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(d, err)
	require.Equal(d, string(want), got)
}

func TestTheScreenShowsARollout(t *testing.T) {
	for _, n := range []int{3, 50, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d := newDesk(t, fleet(n))
			d.golden(fmt.Sprintf("%d-machines-80x24", n), 80, 24)
			d.golden(fmt.Sprintf("%d-machines-140x45", n), 140, 45)
		})
	}
}

func TestEveryScreenFitsItsTerminal(t *testing.T) {
	d := newDesk(t, fleet(50))
	for width := 40; width < 200; width += 7 {
		for height := 10; height < 70; height += 3 {
			d.screen(width, height)
		}
	}
	m, _ := d.model.Update(tea.WindowSizeMsg{Width: 20, Height: 3})
	small, is := m.(watch.Model)
	require.True(t, is)
	assert.LessOrEqual(t, ansi.StringWidth(small.Frame()), 20)
}

func TestTheSelectedMachineStaysWhenTheOrderChanges(t *testing.T) {
	d := newDesk(t, fleet(50))
	d.press("down", "down", "down")
	d.send(watch.Batch{Now: noon, Changes: []watch.Change{{Object: machine("worker-40", v1alpha1.PhaseFailed, "v1.36.3")}}})
	d.press("t")
	assert.Contains(t, d.screen(80, 24), "retry machine worker-4? y/N")
}

func TestAKeyThatChangesSomethingAsksFirst(t *testing.T) {
	for key, want := range map[string]string{
		"p": "pause machinedeployment/workers", "r": "resume machinedeployment/workers", "t": "retry machine/worker-1",
	} {
		d := newDesk(t, fleet(3))
		d.press(key, "n")
		assert.Empty(t, d.done, "no is no")
		assert.Contains(t, d.screen(80, 24), "nothing was changed")
		d.press(key)
		assert.Empty(t, d.done, "nothing before the answer")
		d.press("y")
		assert.Equal(t, []string{want}, d.done)
		assert.Contains(t, d.screen(80, 24), "done")
	}
}

func TestAMachineWithoutAPoolIsPausedItself(t *testing.T) {
	lone := machine("lone", v1alpha1.PhaseReady, "v1.37.2", func(m *v1alpha1.Machine) { m.Labels = nil })
	d := newDesk(t, []watch.Change{{Object: lone}})
	d.press("p", "y")
	assert.Equal(t, []string{"pause machine/lone"}, d.done)
}

func TestAnEmptyNamespaceTakesEveryKey(t *testing.T) {
	d := newDesk(t, nil)
	d.press("p", "r", "t", "w", "enter", "down", "pgdown", "end", "up", "/", "x", "backspace", "backspace", "esc", "?", "down", "esc")
	assert.Empty(t, d.done)
	assert.Contains(t, d.screen(80, 24), "no machines")
}

func TestAFilterShowsOnlyWhatMatches(t *testing.T) {
	d := newDesk(t, fleet(50))
	d.press("/", "V", "e", "r", "s", "i", "o", "n", "N")
	screen := d.screen(80, 24)
	assert.Contains(t, screen, "worker-1 ")
	assert.NotContains(t, screen, "worker-5 ")
	assert.Contains(t, screen, `1 with "VersionN"`)
	d.press("enter", "t")
	assert.Contains(t, d.screen(80, 24), "retry machine worker-1? y/N", "a key is a key again")
	d.press("n", "esc")
	assert.Contains(t, d.screen(80, 24), "worker-5 ")
}

func TestWhyIsShownAndLeftAgain(t *testing.T) {
	d := newDesk(t, fleet(3))
	d.press("w")
	assert.Contains(t, d.screen(80, 24), "why worker-1\nheld by\nthe budget\n")
	d.press("esc")
	assert.Contains(t, d.screen(80, 24), "MACHINE ")
	d.send(watch.Explained{Machine: "x", Err: errors.New("no\x1b[2Jsuch")})
	assert.Contains(t, d.screen(80, 24), "error: no [2Jsuch")
}

func TestAHostCannotDriveTheOperatorsTerminal(t *testing.T) {
	evil := "\x1b]0;owned\a\u009b31m\u202egnp\n\rnext"
	d := newDesk(t, []watch.Change{
		{Object: machine("w", v1alpha1.PhaseWaiting, evil, says("Waiting", "R", evil))},
		{Object: event("w", evil, evil, noon)}, {Object: workers(evil, metav1.ConditionFalse)},
	})
	m, is := d.model.(watch.Model)
	require.True(t, is)
	for _, bad := range []string{"\x1b]", "\a", "\u009b", "\u202e", "\r"} {
		assert.NotContains(t, m.Frame(), bad)
	}
	var out strings.Builder
	require.NoError(t, watch.NewLines(&out, false, noon).Take(watch.Batch{Synced: true, Now: noon, Changes: []watch.Change{{Object: machine("w", v1alpha1.PhaseWaiting, "v", says("Waiting", "R", evil))}}}))
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	assert.NotContains(t, out.String(), "\x1b")
}

func TestUntilDoneEndsWithTheRollout(t *testing.T) {
	old, current := machine("a", v1alpha1.PhaseWaiting, "v1.36.3"), machine("a", v1alpha1.PhaseReady, "v1.37.2")
	stalled := machine("a", v1alpha1.PhaseFailed, "v1.36.3", says("Stalled", "X", "y"))
	manual := func(d *v1alpha1.MachineDeployment) { d.Spec.Paused = true }
	unseen := func(d *v1alpha1.MachineDeployment) { d.Generation = 2 }
	for name, tc := range map[string]struct {
		pool         *v1alpha1.MachineDeployment
		machine      *v1alpha1.Machine
		over, halted bool
	}{
		"it goes on":                  {workers("RollingOut", metav1.ConditionTrue), old, false, false},
		"all are up to date":          {workers("Complete", metav1.ConditionTrue), current, true, false},
		"one soaks":                   {workers("Complete", metav1.ConditionTrue), machine("a", v1alpha1.PhaseSoaking, "v1.37.2"), false, false},
		"a person has paused it":      {workers("Paused", metav1.ConditionUnknown, manual), old, false, false},
		"it has paused itself":        {workers("FailureThresholdReached", metav1.ConditionFalse), old, true, true},
		"it only takes long":          {workers("ProgressDeadlineExceeded", metav1.ConditionFalse), old, false, false},
		"only failed ones are left":   {workers("VersionNotFound", metav1.ConditionFalse), stalled, true, true},
		"nobody has seen its newest":  {workers("Complete", metav1.ConditionTrue, unseen), current, false, false},
		"nobody has seen its retry":   {workers("FailureThresholdReached", metav1.ConditionFalse, unseen), old, false, false},
		"its template is not written": {workers("TemplateRefused", metav1.ConditionFalse), current, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, []watch.Change{{Object: tc.pool}, {Object: tc.machine}}, func(o *watch.Options) { o.UntilDone = true })
			m, is := d.model.(watch.Model)
			require.True(t, is)
			assert.Equal(t, tc.over, d.quit)
			assert.Equal(t, tc.halted, m.Outcome().Halted)
		})
	}
}

func TestAnEstimateIsMadeOfWhatOperationsHaveTaken(t *testing.T) {
	rows := func(history ...func(*v1alpha1.Machine)) []watch.Change {
		return []watch.Change{
			{Object: machine("a", v1alpha1.PhaseReady, "v1.37.2", history...)},
			{Object: machine("b", v1alpha1.PhaseWaiting, "v1.36.3")}, {Object: machine("c", v1alpha1.PhaseWaiting, "v1.36.3")},
		}
	}
	soak := func(d *v1alpha1.MachineDeployment) {
		d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{Soak: &metav1.Duration{Duration: 5 * time.Minute}}}
	}
	for want, changes := range map[string][]watch.Change{
		"no estimate yet": append(rows(), watch.Change{Object: workers("RollingOut", metav1.ConditionTrue)}),
		"about 8m left":   append(rows(took(4*time.Minute)), watch.Change{Object: workers("RollingOut", metav1.ConditionTrue)}),
		"about 18m left":  append(rows(took(4*time.Minute)), watch.Change{Object: workers("RollingOut", metav1.ConditionTrue, soak)}),
	} {
		assert.Contains(t, newDesk(t, changes).screen(80, 24), want)
	}
}

func TestLinesHaveOneForEachChangeAndNoneForNothing(t *testing.T) {
	var out strings.Builder
	l := watch.NewLines(&out, false, noon)
	take := func(changes ...watch.Change) string {
		out.Reset()
		require.NoError(t, l.Take(watch.Batch{Synced: true, Now: noon, Changes: changes}))
		return out.String()
	}
	assert.Equal(t, "2026-05-01T12:00:00Z pool workers 0/0 up to date, 0 in flight, 0 failed\n", take(watch.Change{Object: workers("RollingOut", metav1.ConditionTrue)}))
	before := machine("a", v1alpha1.PhaseWaiting, "v1.36.3", says("Waiting", "BudgetExhausted", "1 of 1"))
	assert.Equal(t, "2026-05-01T12:00:00Z a (workers) Waiting: BudgetExhausted: 1 of 1\n", take(watch.Change{Object: before}))
	assert.Empty(t, take(watch.Change{Object: before.DeepCopy()}), "nothing that is shown has changed")
	assert.Equal(t, "2026-05-01T12:00:00Z a (workers) Waiting -> Ready\n", take(watch.Change{Object: machine("a", v1alpha1.PhaseReady, "v1.37.2")}))
	assert.Empty(t, take(watch.Change{Object: event("a", "Old", "of before", noon.Add(-time.Hour))}))
	assert.Equal(t, "2026-05-01T12:00:01Z a (workers) Drained: 3 pods\n", take(watch.Change{Object: event("a", "Drained", "3 pods", noon.Add(time.Second))}))
	assert.Equal(t, "2026-05-01T12:00:00Z a (workers) Ready -> Deleted\n", take(watch.Change{Object: before, Deleted: true}))
	stopped := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "refit"}, Spec: v1alpha1.LedgerSpec{Stopped: true}}
	assert.Equal(t, "2026-05-01T12:00:00Z refit Stopped\n", take(watch.Change{Object: stopped}))
}

func TestOnlyThePoolsThatAreNamedAreShown(t *testing.T) {
	other := machine("db-1", v1alpha1.PhaseWaiting, "v1.36.3", func(m *v1alpha1.Machine) { m.Labels["pool"] = "databases" })
	d := newDesk(t, append(fleet(3), watch.Change{Object: other}, watch.Change{Object: event("db-1", "Drained", "", noon)}), func(o *watch.Options) { o.Pools = []string{"workers"} })
	assert.NotContains(t, d.screen(80, 24), "db-1")
	assert.Contains(t, d.screen(80, 24), "3 machines")
}

// What one screen costs at 5,000 machines: after a change, and when only the clock has moved.
func BenchmarkFrameOf5000Machines(b *testing.B) {
	first, _ := watch.New(watch.Options{Namespace: "refit", Events: 200}).Update(watch.Batch{Changes: fleet(5000), Now: noon, Synced: true})
	changed := []watch.Change{{Object: machine("worker-4000", v1alpha1.PhaseReady, "v1.37.2")}}
	b.Run("changed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			next, _ := first.Update(watch.Batch{Changes: changed, Now: noon})
			_ = next.View()
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			next, _ := first.Update(watch.Clock(noon))
			_ = next.View()
		}
	})
}

// By the time that the processor spends, so that a busy desk disturbs neither; the peer is what any program pays that lists the namespace once.
func TestAChangedFrameCostsLittleBesideReadingTheList(t *testing.T) {
	spent := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	each := func(times int, work func()) time.Duration {
		runtime.GC()
		began := spent()
		for range times {
			work()
		}
		return (spent() - began) / time.Duration(times)
	}
	list := v1alpha1.MachineList{}
	for _, c := range fleet(5000) {
		if m, is := c.Object.(*v1alpha1.Machine); is {
			list.Items = append(list.Items, *m)
		}
	}
	text, err := json.Marshal(list)
	require.NoError(t, err)
	read := each(5, func() { require.NoError(t, json.Unmarshal(text, &v1alpha1.MachineList{})) })
	model, _ := watch.New(watch.Options{Namespace: "refit", Events: 200}).Update(watch.Batch{Changes: fleet(5000), Now: noon, Synced: true})
	_ = model.View()
	phases := []v1alpha1.Phase{v1alpha1.PhaseReady, v1alpha1.PhaseDraining}
	round := 0
	frame := each(50, func() {
		round++
		model, _ = model.Update(watch.Batch{Changes: []watch.Change{{Object: machine("worker-4000", phases[round%2], "v1.37.2")}}, Now: noon})
		_ = model.View()
	})
	t.Logf("reading the list once: %s; a frame after one change: %s (1/%.0f)", read, frame, float64(read)/float64(frame))
	assert.Less(t, frame, read/4, "with the whole order made anew it is about a half")
}

// What is read first comes in any order; a machine is told with its pool all the same.
func TestLinesBeginWhenEverythingIsRead(t *testing.T) {
	var out strings.Builder
	l := watch.NewLines(&out, false, noon, "workers")
	require.NoError(t, l.Take(watch.Batch{Now: noon, Changes: []watch.Change{{Object: machine("a", v1alpha1.PhaseReady, "v"), First: true}}}))
	assert.Empty(t, out.String())
	require.NoError(t, l.Take(watch.Batch{Synced: true, Now: noon, Changes: []watch.Change{{Object: workers("Progressing", metav1.ConditionTrue), First: true}}}))
	assert.Contains(t, out.String(), " a (workers) Ready")
}
