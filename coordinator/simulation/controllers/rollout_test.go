package controllers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var update = flag.Bool("update", false, "write the transcripts anew")

const mostRounds = 120

func threeMachines(t *testing.T, f *fault) *cluster {
	c := newCluster(t, f)
	c.host("cp1", "control-plane", v1alpha1.RoleControlPlane)
	c.host("w1", "workers", v1alpha1.RoleWorker)
	c.host("w2", "workers", v1alpha1.RoleWorker)
	c.pool("control-plane", v1alpha1.Versions{Kubelet: after, ControlPlane: after})
	c.pool("workers", v1alpha1.Versions{Kubelet: after})
	return c
}

// parked is a control plane that stays at its versions, and whose certificates are due.
func parked(t *testing.T) *cluster {
	c := newCluster(t, &fault{})
	for _, name := range []string{"cp1", "cp2", "cp3"} {
		c.host(name, "control-plane", v1alpha1.RoleControlPlane).due = true
		m := &v1alpha1.Machine{}
		require.NoError(t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, m))
		m.Spec.Kubeadm = &v1alpha1.KubeadmSpec{RenewCertificatesBefore: &metav1.Duration{Duration: 720 * time.Hour}}
		require.NoError(t, c.api.Update(context.Background(), m))
	}
	c.pool("control-plane", v1alpha1.Versions{Kubelet: before, ControlPlane: before})
	return c
}

// line is one machine at the end of a round.
func (c *cluster) line(name string) string {
	m := &v1alpha1.Machine{}
	require.NoError(c.t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, m))
	parts := []string{name, string(m.Status.Phase)}
	if v := m.Status.Versions; v != nil {
		parts = append(parts, v.Kubelet)
	}
	for _, s := range c.ledger().Slots {
		if s.Machine == name {
			parts = append(parts, "slot="+string(s.State))
		}
	}
	switch n := c.node(name); {
	case n.Spec.Unschedulable && n.Annotations[v1alpha1.AnnotationCordonedBy] == v1alpha1.CordonStandby:
		parts = append(parts, "standby")
	case n.Spec.Unschedulable:
		parts = append(parts, "cordoned")
	}
	if w := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate); w != nil && w.Status != "True" {
		parts = append(parts, w.Reason)
	}
	return strings.Join(parts, " ")
}

// run goes on until all is quiet, and returns the transcript: each round that changed something.
func (c *cluster) run() string {
	var out strings.Builder
	last, quiet := "", 0
	for i := 1; i <= mostRounds && quiet < 6; i++ {
		c.round()
		c.checkInvariants()
		var lines []string
		for _, h := range c.hosts {
			lines = append(lines, "  "+c.line(h.name))
		}
		now := strings.Join(lines, "\n")
		if now == last {
			quiet++
			continue
		}
		last, quiet = now, 0
		fmt.Fprintf(&out, "round %d\n%s\n", i, now)
	}
	return out.String()
}

// checkInvariants holds at the end of every round, whatever has been killed.
func (c *cluster) checkInvariants() {
	away := 0
	for _, h := range c.hosts {
		n := c.node(h.name)
		if (n.Spec.Unschedulable && n.Annotations[v1alpha1.AnnotationCordonedBy] != v1alpha1.CordonStandby) || h.working > 0 {
			away++
		}
		if h.working > 0 && !h.stays {
			assert.True(c.t, c.node(h.name).Spec.Unschedulable, "%s works on a node that was not cordoned", h.name)
		}
	}
	assert.LessOrEqual(c.t, away, 1, "more than one machine is away")
	if c.hosts[0].api == before {
		for _, h := range c.hosts[1:] {
			assert.Equal(c.t, before, h.kubelet, "%s is newer than the API server", h.name)
		}
	}
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "the rollout goes another way now: read the difference, and write it anew with go test -update if it is meant")
}

func TestARolloutGoesAsItsTranscriptSays(t *testing.T) {
	t.Run("three machines", func(t *testing.T) {
		golden(t, "three-machines", threeMachines(t, &fault{}).run())
	})
	t.Run("certificates are due", func(t *testing.T) {
		c := parked(t)
		golden(t, "certificates-are-due", c.run())
		for _, h := range c.hosts {
			assert.False(t, h.due, h.name)
			assert.Len(t, h.runs, 1, h.name)
			m := &v1alpha1.Machine{}
			require.NoError(t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: h.name}, m))
			assert.Equal(t, v1alpha1.OperationRenewCertificates, m.Status.LastOperation.Type)
		}
	})
	t.Run("a worker fails", func(t *testing.T) {
		c := threeMachines(t, &fault{})
		c.hosts[1].fails = true
		golden(t, "a-worker-fails", c.run())
		assert.Equal(t, before, c.hosts[2].kubelet, "the rollout has paused itself")
	})
}

// Every write of the coordinator is made the last one of its life: once lost on the
// way, once done but never answered. All of them take minutes, so that by default every
// fifth is tried; REFIT_EXHAUSTIVE=1 tries each.
func TestTheCoordinatorMayBeKilledAtAnyWrite(t *testing.T) {
	counted := &fault{}
	threeMachines(t, counted).run()
	require.Greater(t, counted.writes, 30)
	stride := 5
	if os.Getenv("REFIT_EXHAUSTIVE") != "" {
		stride = 1
	}
	for i, late := range []bool{false, true} {
		for at := 1 + i*(stride/2); at <= counted.writes; at += stride {
			t.Run(fmt.Sprintf("write %d late %t", at, late), func(t *testing.T) {
				c := threeMachines(t, &fault{at: at, late: late})
				c.run()
				require.Equal(t, 1, c.restarts)
				for _, h := range c.hosts {
					assert.Equal(t, after, h.kubelet, h.name)
					assert.Len(t, h.runs, 1, "%s did its work once", h.name)
					n := c.node(h.name)
					assert.False(t, n.Spec.Unschedulable, h.name)
					assert.NotContains(t, n.Annotations, v1alpha1.AnnotationCordonedBy)
					assert.Empty(t, n.Spec.Taints, "no mark is left")
				}
				assert.Empty(t, c.ledger().Slots)
			})
		}
	}
}

// Two coordinators at once: the older one is still running when the newer one has
// taken over. It may not write a ledger any more, and says so.
func TestAnOlderCoordinatorIsDeposedAtItsNextWriteOfTheLedger(t *testing.T) {
	c := threeMachines(t, &fault{})
	older := c.coordinator
	for range 4 {
		c.round()
	}
	require.NotEmpty(t, c.ledger().Slots)
	c.start() // the newer one
	c.round()
	newer := c.coordinator
	for range 40 {
		c.round()
		c.coordinator = older
		_ = c.lead(context.Background())
		c.coordinator = newer
		c.checkInvariants()
		if older.deposed != nil {
			break
		}
	}
	require.Error(t, older.deposed)
	c.run()
	for _, h := range c.hosts {
		assert.Equal(t, after, h.kubelet)
		assert.Len(t, h.runs, 1)
	}
}

func (c *cluster) failure(name string) string {
	m := &v1alpha1.Machine{}
	require.NoError(c.t, c.api.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, m))
	if f := m.Status.RolloutFailure; f != nil {
		return f.Class + " " + string(m.Status.Phase)
	}
	return ""
}

func (c *cluster) roundsUntil(what string, is func() bool) {
	c.t.Helper()
	for range mostRounds {
		if is() {
			return
		}
		c.round()
		c.checkInvariants()
	}
	require.Fail(c.t, what+" never came")
}

func TestAHostThatIsAwayTooLongCountsAsFailedAndIsForgivenWhenItIsBack(t *testing.T) {
	c := threeMachines(t, &fault{})
	w1 := c.hosts[1]
	w1.lasts = 30
	c.roundsUntil("the work on w1", func() bool { return w1.working > 0 && w1.working < 25 })
	assert.Empty(t, c.failure("w1"))
	c.now = c.now.Add(6 * time.Minute)
	c.round()
	c.round()
	assert.Equal(t, "Unreachable Failed", c.failure("w1"))
	assert.Len(t, c.ledger().Slots, 1, "a slot never ends by the clock")
	c.roundsUntil("the end", func() bool { return w1.working == 0 })
	c.run()
	assert.Empty(t, c.failure("w1"))
	for _, h := range c.hosts {
		assert.Equal(t, after, h.kubelet)
	}
}

func TestAMachineThatDoesNotGetWellKeepsItsSlotAndHoldsTheOthers(t *testing.T) {
	c := threeMachines(t, &fault{})
	w1, w2 := c.hosts[1], c.hosts[2]
	c.roundsUntil("the work on w1", func() bool { return len(w1.runs) == 1 })
	w1.sick = true
	c.roundsUntil("the end of it", func() bool { return w1.working == 0 })
	c.round()
	c.round()
	c.now = c.now.Add(11 * time.Minute)
	c.round()
	c.round()
	assert.Equal(t, "UnhealthyAfter Failed", c.failure("w1"))
	assert.True(t, c.node("w1").Spec.Unschedulable)
	assert.Empty(t, w2.runs)
	w1.sick = false
	c.run()
	assert.Empty(t, c.failure("w1"))
	assert.False(t, c.node("w1").Spec.Unschedulable)
	assert.Len(t, w2.runs, 1)
}
