package gates_test

import (
	"fmt"
	"runtime"
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
)

// ofSize is a pool of so many machines, each with a past, that all wait for one that is worked on.
func ofSize(n int) *fleet.Fleet {
	past := func(i int) Edit {
		return Of(func(m *v1alpha1.Machine) {
			for k := range 5 {
				end := time.Duration(i*7%997+k*1000) * time.Minute
				m.Status.History = append(m.Status.History, v1alpha1.HistoryEntry{StartTime: ago(end + 5*time.Minute), EndTime: ago(end)})
			}
		})
	}
	downBefore := func(_ *v1alpha1.Machine, node *corev1.Node, _ *v1alpha1.LedgerSpec) {
		node.Status.Conditions[0].Status, node.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, *ago(9000 * time.Hour)
	}
	b := New().Deployment("w").Machine("busy", "w", worker, InSlot(v1alpha1.DisruptionDrain)).Machine("down", "w", worker, downBefore)
	for i := range n {
		b.Machine(fmt.Sprintf("w%05d", i), "w", worker, past(i))
	}
	return b.Build()
}

// What is allocated is counted and not the time, which others who are at work have a part in.
func TestALargePoolIsJudgedAtACostThatGrowsWithItsMachines(t *testing.T) {
	cost := func(n int) uint64 {
		f := ofSize(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, m := range f.Machines {
			gates.Check(f, m)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := cost(100), cost(800)
	assert.Less(t, large, 16*small, "8 times the machines: %d bytes after %d", large, small)
}

func TestWhatTheGatesAskOfAPoolIsFoundOnceForAReading(t *testing.T) {
	unwell := func(m *v1alpha1.Machine, _ *corev1.Node, l *v1alpha1.LedgerSpec) {
		m.Status.RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassUnhealthyAfter}
		l.Slots = append(l.Slots, v1alpha1.Slot{Machine: m.Name, MachineUID: string(m.UID), ReservedTime: *ago(time.Hour), AppliedTime: ago(time.Hour)})
	}
	f := New().Deployment("w").Machine("w1", "w", worker, unwell).Machine("w2", "w", worker, unwell).Machine("w3", "w", worker, unknownFor(time.Minute)).Build()
	p := f.Pools["w"]
	failures, inARow, down := p.Failures(), p.UnhealthyInARow(), p.WentDown()
	p.Machines = nil
	assert.Equal(t, failures, p.Failures())
	assert.Equal(t, inARow, p.UnhealthyInARow())
	assert.Equal(t, down, p.WentDown())
	assert.Equal(t, []int{2, 2, 1}, []int{len(failures), len(inARow), len(down)})
}

func TestADownMachineThatIsGivenASlotOnTheReadingHoldsUpNobodyAnyMore(t *testing.T) {
	down := func(_ *v1alpha1.Machine, n *corev1.Node, _ *v1alpha1.LedgerSpec) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, *ago(time.Minute)
	}
	f := New().Deployment("w").Machine("w1", "w", worker).Machine("w2", "w", worker, down).
		Machine("w3", "w", worker, Of(func(m *v1alpha1.Machine) {
			m.Status.History = []v1alpha1.HistoryEntry{{StartTime: ago(time.Hour), EndTime: ago(2 * time.Minute)}}
		})).Build()
	require.NotNil(t, judgedBy(t, f, "w1", "degraded"))
	f.Find("w2").Hold(&v1alpha1.Slot{Machine: "w2", ReservedTime: metav1.NewTime(Now)})
	assert.Nil(t, judgedBy(t, f, "w1", "degraded"))
}
