package controllers

import (
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// flock are a control plane and workers of which one is a canary, that may all be away at once.
func flock(t *testing.T) *cluster {
	c := newCluster(t, &fault{})
	c.host("cp1", "control-plane", v1alpha1.RoleControlPlane)
	for _, name := range []string{"w1", "w2", "w3"} {
		c.host(name, "workers", v1alpha1.RoleWorker)
	}
	c.pool("control-plane", v1alpha1.Versions{Kubelet: after, ControlPlane: after})
	c.pool("workers", v1alpha1.Versions{Kubelet: after})
	c.strategy("workers", func(s *v1alpha1.RolloutStrategy) {
		three := intstr.FromInt32(3)
		s.RollingUpdate.Canary, s.RollingUpdate.Soak = &v1alpha1.Canary{Count: 1}, &metav1.Duration{Duration: time.Minute}
		s.RollingUpdate.MaxUnavailable, s.RollingUpdate.FailureThreshold = &three, &three
	})
	return c
}

// roundsWithout is roundsUntil for a fleet of which several machines may be away.
func (c *cluster) roundsWithout(what string, is func() bool, never func() bool) {
	c.t.Helper()
	for range 3 * mostRounds {
		if is() {
			return
		}
		c.round()
		if never() {
			assert.Fail(c.t, "before "+what+" another machine went")
			return
		}
	}
	assert.Fail(c.t, what+" never came")
}

func TestTheCanaryIsThroughBeforeTheOthersGoTogether(t *testing.T) {
	c := flock(t)
	others := func() bool { return c.slotOf("w2") != "" || c.slotOf("w3") != "" }
	c.roundsWithout("the soak of w1", func() bool { return c.slotOf("w1") == v1alpha1.SlotVerifying && !c.node("w1").Spec.Unschedulable }, others)
	c.roundsWithout("the end of the soak", func() bool { return len(c.hosts[1].runs) == 1 && c.slotOf("w1") == "" }, others)
	c.roundsWithout("the others", func() bool { return c.slotOf("w2") != "" && c.slotOf("w3") != "" }, func() bool { return c.slotOf("w1") != "" })
}

func TestACanaryThatFailsStopsTheOthers(t *testing.T) {
	c := flock(t)
	c.hosts[1].fails = true
	others := func() bool { return c.slotOf("w2") != "" || c.slotOf("w3") != "" }
	c.roundsWithout("the failure", func() bool { return c.failure("w1") != "" && c.slotOf("w1") == "" }, others)
	for range 5 {
		c.round()
	}
	assert.False(t, others())
	assert.Contains(t, c.line("w2"), "CanaryFailed")
}
