package coordinator

import (
	"context"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/audit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (w *world) budgetStatus(name string) v1alpha1.MachineDisruptionBudgetStatus {
	w.t.Helper()
	b := &v1alpha1.MachineDisruptionBudget{}
	require.NoError(w.t, w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: name}, b))
	return b.Status
}

func budgetWrites(t *testing.T, from time.Time) (n int) {
	for _, e := range audit.Read(t, server.AuditLog()).By(coordinatorUser).Between(from, time.Now()).Once() {
		if e.ObjectRef.Resource == "machinedisruptionbudgets" && e.Verb == "patch" {
			n++
		}
	}
	return n
}

func TestABudgetSaysWhatItAllowsAndWhoIsAwayInFewWrites(t *testing.T) {
	w := fleetOfThree(t)
	w.budget("all", 2)
	began := time.Now()
	w.start()
	w.until("an idle fleet is counted", func() bool {
		st := w.budgetStatus("all")
		return st.ObservedGeneration == 1 && st.Machines == 4 && st.Unavailable == 0 && st.DisruptionsAllowed == 2 && len(st.UnavailableMachines) == 0
	})
	w.cordon("w3", true)
	w.until("a cordon of somebody takes its room", func() bool {
		st := w.budgetStatus("all")
		return st.DisruptionsAllowed == 1 && assert.ObjectsAreEqual([]string{"w3"}, st.UnavailableMachines)
	})
	w.holds("w2", "w3")
	w.pool("workers", workerAt(newK8s))
	w.edit("workers", allowTwo)
	w.worksOn("w1")
	w.until("and so does a machine that is worked on", func() bool {
		st := w.budgetStatus("all")
		return st.Unavailable == 2 && st.DisruptionsAllowed == 0 && assert.ObjectsAreEqual([]string{"w1", "w3"}, st.UnavailableMachines)
	})
	assert.LessOrEqual(t, budgetWrites(t, began), 3, "one for each thing that was to be seen")
	settled := time.Now()
	for i := range 20 { // each brings a pass
		w.annotate("w2", "test.example.com/news", time.Duration(i).String())
	}
	time.Sleep(3 * time.Second)
	assert.Zero(t, budgetWrites(t, settled), "a pass that changes nothing writes nothing")
}

func TestAPoolShowsThatItPausedItself(t *testing.T) {
	w := fleetOfThree(t)
	shown := func() string {
		d := &v1alpha1.MachineDeployment{}
		require.NoError(t, w.admin.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: "workers"}, d))
		return d.Status.Paused
	}
	w.hosts["w1"].set(func(h *host) { h.Fail = true })
	w.holds("w2", "w3")
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("the rollout has paused itself", func() bool { return shown() == "FailureThresholdReached" })
	w.refitOK("pause", "workers")
	w.until("a person's word is told first", func() bool { return shown() == "Paused" })
	w.refitOK("pause", "--all")
	w.until("and the stop switch before it", func() bool { return shown() == "Stopped" })
	w.refitOK("resume", "--all")
	w.refitOK("resume", "workers")
	w.until("it has paused itself still", func() bool { return shown() == "FailureThresholdReached" })
	for _, h := range w.hosts {
		h.set(func(h *host) { h.Fail, h.Hold = false, false })
	}
	w.refitOK("retry", "machinedeployment/workers")
	w.untilUpToDate("w1", "w2", "w3")
	w.until("it goes on", func() bool {
		return shown() == "" && w.deploymentCondition("workers", v1alpha1.ConditionProgressing).Status == metav1.ConditionTrue
	})
}
