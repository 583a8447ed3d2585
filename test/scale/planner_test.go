package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	from, to    = "v1.34.5", "v1.37.2"
	controllers = 3 // control planes of every fleet
)

var releases = map[string]string{"v1.35": "v1.35.6", "v1.36": "v1.36.3"}

// machines is a fleet as the API server would list it: every minor from one to the
// next is on its way, and its runtime too.
func machines(n int) []v1alpha1.Machine {
	list := make([]v1alpha1.Machine, n)
	for i := range list {
		m := &list[i]
		m.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("host-%05d", i), Namespace: "refit"}
		m.Spec.Roles = []v1alpha1.Role{v1alpha1.RoleWorker}
		runtimeWish := &v1alpha1.ContainerRuntime{Name: v1alpha1.RuntimeContainerd, Version: "2.1.4"}
		m.Spec.Versions = &v1alpha1.Versions{Kubelet: to, ContainerRuntime: runtimeWish}
		m.Status.Versions = &v1alpha1.ObservedVersions{
			Kubelet:          from,
			ContainerRuntime: &v1alpha1.ObservedRuntime{Name: "containerd", Version: "1.7.28", Text: "containerd://1.7.28"},
		}
		if i < controllers {
			m.Spec.Roles = append(m.Spec.Roles, v1alpha1.RoleControlPlane)
			m.Spec.Versions.ControlPlane = to
			m.Status.Versions.ControlPlane = &v1alpha1.ObservedControlPlane{APIServer: from, ControllerManager: from, Scheduler: from}
		}
	}
	return list
}

func fleetOf(list []v1alpha1.Machine) upgrade.Fleet {
	fleet := upgrade.Fleet{HopPatch: releases}
	for i := range list {
		fleet.Hosts = append(fleet.Hosts, upgrade.StateOf(&list[i], nil, nil))
	}
	return fleet
}

// cost is what one call takes: the best processor time of several runs (which others on
// the machine do not add to, as they do to the clock's), and what it allocates.
type cost struct {
	time  time.Duration
	bytes uint64
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func measure(once func()) cost {
	best := cost{time: time.Hour}
	for range 7 {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := processorTime()
		once()
		took := processorTime() - start
		runtime.ReadMemStats(&after)
		if took < best.time {
			best = cost{took, after.TotalAlloc - before.TotalAlloc}
		}
	}
	return best
}

// Two questions are asked of the planner: what each machine does next (the coordinator,
// on every change), and the whole way of the fleet (`kubectl refit plan`). The peer is
// the least that any program pays for the same fleet: decoding its objects once.
func TestPlanningGrowsLinearlyWithTheFleet(t *testing.T) {
	type row struct {
		machines            int
		decode, next, whole cost
	}
	var rows []row
	for _, n := range []int{625, 1250, 2500, 5000} {
		list := machines(n)
		text, err := json.Marshal(list)
		require.NoError(t, err)
		fleet := fleetOf(list)
		r := row{machines: n}
		r.decode = measure(func() {
			var decoded []v1alpha1.Machine
			require.NoError(t, json.Unmarshal(text, &decoded))
		})
		r.next = measure(func() {
			view := upgrade.NewView(fleet)
			for _, h := range fleet.Hosts {
				view.NextTarget(h, h.Wish)
			}
		})
		r.whole = measure(func() {
			hops, blocked := upgrade.Hops(fleet)
			require.Empty(t, blocked)
			require.Len(t, hops, (n-controllers)+4+4+3, "one window for a worker, and the fewest for three control planes")
		})
		rows = append(rows, r)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "MACHINES\tDECODE\tNEXT\t/DECODE\tWHOLE WAY\t/DECODE\tMIB\t/DECODE")
	for _, r := range rows {
		fmt.Fprintf(out, "%d\t%s\t%s\t%.2f\t%s\t%.2f\t%.1f\t%.2f\n", r.machines, r.decode.time.Round(time.Microsecond),
			r.next.time.Round(time.Microsecond), ratio(r.next, r.decode), r.whole.time.Round(time.Microsecond), ratio(r.whole, r.decode),
			float64(r.whole.bytes)/(1<<20), float64(r.whole.bytes)/float64(r.decode.bytes))
	}
	require.NoError(t, out.Flush())

	first, last := rows[0], rows[len(rows)-1]
	growth := float64(last.machines) / float64(first.machines)
	for what, pair := range map[string][2]cost{"next": {first.next, last.next}, "the whole way": {first.whole, last.whole}} {
		grown := float64(pair[1].time) / float64(pair[0].time)
		t.Logf("%s: %.0f times the machines take %.1f times the time and %.1f times the memory", what, growth, grown, float64(pair[1].bytes)/float64(pair[0].bytes))
		assert.Less(t, grown, growth*2.5, "%s: the time grows with the fleet, not with its square", what)
		assert.Less(t, float64(pair[1].bytes)/float64(pair[0].bytes), growth*1.5, "%s: so does the memory", what)
	}
	assert.Less(t, ratio(last.next, last.decode), 2.0, "a look at every machine costs about what reading them from the API server does")
}

func ratio(a, b cost) float64 { return float64(a.time) / float64(b.time) }
