package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// schedule is a random fleet with random faults and edits, the same for the same seed. At the
// end a person mends everything.
type schedule struct {
	*rand.Rand
	Scenario

	twists []twist
}

const (
	pools  = 2
	mended = 90 * time.Minute
	// mendings, and the time between two of them: what failed may fail once more.
	mendings    = 3
	mendedAgain = 3 * time.Hour
)

func newSchedule(seed uint64) *schedule {
	s := &schedule{Rand: rand.New(rand.NewPCG(seed, 0))}
	s.Namespace = "refit"
	s.Spec.Seed = seed
	s.Spec.Until = &metav1.Duration{Duration: 10 * 24 * time.Hour}
	s.Spec.Releases = []v1alpha1.KubernetesVersion{"v1.35.6", "v1.36.3"}
	s.Spec.Durations.Drain, s.Spec.Durations.Apply = &Duration{2 * time.Minute, 0.8}, &Duration{3 * time.Minute, 0.8}
	from := v1alpha1.KubernetesVersion([]string{"v1.36.3", "v1.36.3", "v1.36.3", "v1.36.3", "v1.35.6", "v1.34.9"}[s.IntN(6)])
	s.Spec.Machines = append(s.Spec.Machines, Generator{
		Name: "cp", Count: []int{1, 2, 3, 3}[s.IntN(4)], Roles: []v1alpha1.Role{v1alpha1.RoleControlPlane},
		Versions: v1alpha1.Versions{Kubelet: from, ControlPlane: from}, Wish: &v1alpha1.Versions{Kubelet: "v1.37.2", ControlPlane: "v1.37.2"},
	})
	for i := range pools {
		s.pool(i, from)
	}
	if s.IntN(3) == 0 {
		most := intstr.FromInt32(1 + s.Int32N(2))
		s.Budgets = append(s.Budgets, v1alpha1.MachineDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "all"},
			Spec: v1alpha1.MachineDisruptionBudgetSpec{
				Selector:       metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: metav1.LabelSelectorOpExists}}},
				MaxUnavailable: &most,
			},
		})
	}
	for range s.IntN(7) {
		s.fault()
	}
	for range s.IntN(4) {
		s.twists = append(s.twists, twist{
			at: s.moment(), lasts: time.Duration(1+s.IntN(900)) * time.Second, kind: twistKinds[s.IntN(len(twistKinds))], pick: s.IntN(100),
		})
	}
	s.mend()
	return s
}

func (s *schedule) pool(i int, from v1alpha1.KubernetesVersion) {
	name := fmt.Sprintf("p%d", i)
	g := Generator{Name: name + "-", Count: 1 + s.IntN(2), Labels: map[string]string{"pool": name}, Versions: v1alpha1.Versions{Kubelet: from}}
	d := v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "refit"}}
	d.Spec.Selector.MatchLabels = g.Labels
	d.Spec.Template.Spec.Versions = &v1alpha1.Versions{Kubelet: "v1.37.2"}
	most := []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("50%")}[s.IntN(3)]
	threshold := intstr.FromInt32(1 + s.Int32N(3))
	d.Spec.Strategy = &v1alpha1.RolloutStrategy{RollingUpdate: &v1alpha1.RollingUpdate{MaxUnavailable: &most, FailureThreshold: &threshold}}
	if s.IntN(2) == 0 {
		g.TopologyKey, g.Domains = "zone", []string{"a", "b"}
		if s.IntN(2) == 0 {
			d.Spec.Strategy.RollingUpdate.TopologyKey = "zone"
		}
	}
	if s.IntN(3) == 0 {
		d.Spec.Strategy.RollingUpdate.Soak = &metav1.Duration{Duration: 5 * time.Minute}
	}
	s.Spec.Machines, s.Deployments = append(s.Spec.Machines, g), append(s.Deployments, d)
}

func (s *schedule) machine() string {
	g := s.Spec.Machines[s.IntN(len(s.Spec.Machines))]
	return fmt.Sprintf("%s%d", g.Name, 1+s.IntN(g.Count))
}

func (s *schedule) add(at time.Duration, e Event) {
	e.At = at.String()
	s.Spec.Events = append(s.Spec.Events, e)
}

// moment is a time at which something may happen; most of a rollout happens early.
func (s *schedule) moment() time.Duration {
	return time.Duration(s.IntN([]int{10, 40, 70}[s.IntN(3)]*60)) * time.Second
}

func (s *schedule) fault() {
	at := s.moment()
	m, d := s.machine(), fmt.Sprintf("MachineDeployment/p%d", s.IntN(pools))
	switch s.IntN(9) {
	case 0:
		s.add(at, Event{Action: "NodeNotReady", Machine: m})
		s.add(at+time.Duration(s.IntN(1200))*time.Second, Event{Action: "NodeReady", Machine: m})
	case 1:
		s.add(at, Event{Action: "NodeNotReady", Machine: m})
	case 2:
		s.add(at, Event{Action: "Cordon", Machine: m})
	case 3:
		s.add(at, Event{Action: "Uncordon", Machine: m})
	case 4:
		rolledBack := s.IntN(2) == 0
		s.add(at, Event{Action: "FailApply", Machine: m, RolledBack: &rolledBack})
	case 5:
		s.add(at, Event{Action: "Pause", Object: d})
		s.add(at+time.Duration(s.IntN(3600))*time.Second, Event{Action: "Resume", Object: d})
	case 6:
		s.add(at, Event{Action: "StopAll"})
		s.add(at+time.Duration(s.IntN(3600))*time.Second, Event{Action: "ResumeAll"})
	case 7:
		version := []string{"v1.37.1", "v1.36.4", "v1.37.2"}[s.IntN(3)]
		patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"versions": map[string]any{"kubelet": version}}}}})
		s.add(at, Event{Action: "Patch", Object: d, Patch: &kuberuntime.RawExtension{Raw: patch}})
	case 8:
		s.add(at, Event{Action: "Retry", Object: "Machine/" + m})
	}
}

// mend does all that a person can, again and again.
func (s *schedule) mend() {
	for round := range mendings {
		at := mended + time.Duration(round)*mendedAgain
		patch := &kuberuntime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"versions":{"kubelet":"v1.37.2"}}}}}`)}
		for i := range pools {
			s.add(at, Event{Action: "Patch", Object: fmt.Sprintf("MachineDeployment/p%d", i), Patch: patch})
		}
		for _, g := range s.Spec.Machines {
			for i := range g.Count {
				name := fmt.Sprintf("%s%d", g.Name, i+1)
				s.add(at, Event{Action: "NodeReady", Machine: name})
				s.add(at, Event{Action: "Retry", Object: "Machine/" + name})
				if round == 0 {
					s.add(at, Event{Action: "Uncordon", Machine: name})
				}
			}
		}
	}
}

// judge plays a schedule, and says what is wrong with how it went.
func (s *schedule) judge(tell func(Entry)) []string {
	var wrong []string
	e, err := New(s.Scenario, tell)
	if err != nil {
		return []string{err.Error()}
	}
	o := observe(e, func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) })
	t := &twister{e: e}
	e.again, e.deposed = repeated, t.deposed
	t.plan(s.twists)
	sum, err := e.Run(context.Background())
	switch {
	case err != nil:
		wrong = append(wrong, err.Error())
	case sum.Outcome != Completed:
		wrong = append(wrong, fmt.Sprintf("it ends as %s, though all was mended: %+v", sum.Outcome, sum.Waiting))
	}
	o.end()
	for name, n := range e.world.nodes {
		if n.Spec.Unschedulable {
			wrong = append(wrong, fmt.Sprintf("the node of %s is still cordoned at the end: %v", name, n.Annotations))
		}
	}
	return wrong
}

// Whatever happens to a fleet, the judge finds nothing wrong, and once everything is mended
// every machine arrives. REFIT_SEED=n plays one schedule and prints it, REFIT_SCHEDULES=n as many
// as that, however long they take.
func TestNoScheduleOfFaultsBreaksARule(t *testing.T) {
	if text := os.Getenv("REFIT_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		s := newSchedule(seed)
		assert.Empty(t, s.judge(func(e Entry) {
			t.Log(e.Time.Sub(DefaultStart), e.Action, e.Machine, e.Reason, e.Message)
		}))
		return
	}
	schedules, most, all := uint64(2000), 40*time.Second, false
	if os.Getenv("REFIT_EXHAUSTIVE") != "" {
		schedules, most, all = 10000, 45*time.Minute, true
	}
	if text := os.Getenv("REFIT_SCHEDULES"); text != "" {
		var err error
		schedules, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		most, all = 45*time.Minute, true
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the worlds are small, and the rubbish is much
	began := time.Now()
	var next, played atomic.Uint64
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for seed := next.Add(1); seed <= schedules && time.Since(began) < most; seed = next.Add(1) {
				played.Add(1)
				if wrong := newSchedule(seed).judge(func(Entry) {}); len(wrong) > 0 {
					assert.Fail(t, "a rule is broken", "replay with REFIT_SEED=%d: %s", seed, strings.Join(wrong[:min(len(wrong), 3)], "\n"))
				}
			}
		})
	}
	players.Wait()
	if all {
		assert.Equal(t, int64(schedules), int64(played.Load()), "there was no time for the rest")
	}
	took := time.Since(began)
	t.Logf("%d schedules in %s, %s of a CPU each at most", played.Load(), took.Round(time.Second),
		(took * time.Duration(runtime.GOMAXPROCS(0)) / time.Duration(max(played.Load(), 1))).Round(time.Millisecond))
}
