package coordinator

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startPod starts a coordinator as the pod of the Deployment that is on the node, and tells it what the Deployment tells.
func (w *world) startPod(name, node string) *exec.Cmd {
	w.t.Helper()
	ctx := context.Background()
	w.pod(name, node, true)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	labels := `{"metadata":{"labels":{"app.kubernetes.io/name":"refit-coordinator"}}}`
	require.NoError(w.t, w.workload.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(labels))))
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	require.NoError(w.t, w.workload.Status().Update(ctx, p))
	return w.restartPod(name, node)
}

// restartPod starts the container of a pod that is there.
func (w *world) restartPod(name, node string) *exec.Cmd {
	w.t.Helper()
	p := &corev1.Pod{}
	require.NoError(w.t, w.workload.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, p))
	cmd := w.command(5*time.Second, "POD_NAMESPACE=default", "POD_NAME="+name, "POD_UID="+string(p.UID), "NODE_NAME="+node)
	w.mu.Lock()
	w.pods = append(w.pods, cmd)
	w.mu.Unlock()
	return cmd
}

func (w *world) killPods() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cmd := range w.pods {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	w.pods = nil
}

// whoReserved watches under which leader each machine gets its slot, by the leader's epoch, until the returned function is called.
func (w *world) whoReserved() func() map[string]int64 {
	seen := map[string]int64{}
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			l := &v1alpha1.Ledger{}
			if w.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.LedgerName}, l) != nil {
				continue
			}
			for _, s := range l.Spec.Slots {
				if _, known := seen[s.Machine]; !known {
					seen[s.Machine] = l.Spec.Epoch
				}
			}
		}
	}()
	return func() map[string]int64 {
		stop()
		<-ended
		return seen
	}
}

// The first one leads on a worker, w1 by name the first to go; the second one waits for the lead on the control plane.
func TestALeaderUpgradesItsOwnNodeLastAndHandsTheLeadOverFirst(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	workers := []string{"w1", "w2", "w3"}
	for _, name := range workers {
		w.host(name, "workers", v1alpha1.RoleWorker)
	}
	first := w.startPod("refit-coordinator-a", "w1")
	w.until("it leads", func() bool { return w.ledger().Epoch == 1 })
	w.startPod("refit-coordinator-b", "cp1")
	leaders := w.whoReserved()
	w.pool("workers", workerAt(newK8s))
	ended := make(chan struct{})
	go func() { // what the kubelet sees of its pod: its process ends
		defer close(ended)
		_ = first.Wait()
	}()
	for _, name := range workers { // until then each is up to date without any wish
		w.until("the template of "+name+" is written", func() bool {
			v := w.machine(name).Spec.Versions
			return v != nil && v.Kubelet == newK8s
		})
	}
	w.untilUpToDate(workers...)

	select {
	case <-ended:
	case <-time.After(patience):
		require.Fail(t, "the leader on w1 is still there")
	}
	assert.Equal(t, 0, first.ProcessState.ExitCode())
	for _, name := range workers {
		assert.Len(t, w.hosts[name].RanUnder(), 1, name)
	}
	assert.Equal(t, map[string]int64{"w1": 2, "w2": 1, "w3": 1}, leaders(), "who reserved, and so who cordoned: the second one its predecessor's node, and only that")
	assert.False(t, w.podExists("refit-coordinator-a"), "drained like any other pod")
	assert.True(t, w.podExists("refit-coordinator-b"))
}

func TestALeaderThatNobodyCanFollowIsEvictedLast(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	w.host("w1", "workers", v1alpha1.RoleWorker).set(func(h *host) { h.stuckPods = true })
	w.host("w2", "workers", v1alpha1.RoleWorker).set(func(h *host) { h.Kubelet = newK8s })
	w.pod("app", "w1", true)
	w.startPod("refit-coordinator-a", "w1")
	w.pool("workers", workerAt(newK8s))
	leaves := func(name string) bool {
		p := &corev1.Pod{}
		err := w.workload.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, p)
		return err != nil || p.DeletionTimestamp != nil
	}
	w.until("the application is evicted", func() bool { return leaves("app") })
	assert.False(t, leaves("refit-coordinator-a"), "while others leave, ours stays")
	w.hosts["w1"].set(func(h *host) { h.stuckPods = false })
	w.untilUpToDate("w1", "w2") // the process outlives its pod here
	assert.Len(t, w.hosts["w1"].RanUnder(), 1)
	assert.False(t, w.podExists("refit-coordinator-a"))
}

// The other pod is ready by its word, and nothing runs in it: the lead comes back to the one that gave it away.
func TestALeadThatNobodyTakesComesBackAndTheRolloutGoesOn(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "workers", v1alpha1.RoleWorker).set(func(h *host) { h.Kubelet = newK8s })
	first := w.startPod("refit-coordinator-a", "w1")
	dead := w.startPod("refit-coordinator-b", "cp1")
	require.NoError(t, dead.Process.Kill())
	w.pool("workers", workerAt(newK8s))
	require.NoError(t, first.Wait(), "it gives the lead away")
	assert.Empty(t, w.hosts["w1"].RanUnder())
	w.restartPod("refit-coordinator-a", "w1") // as the kubelet does
	w.untilUpToDate("w1", "w2")
	assert.Len(t, w.hosts["w1"].RanUnder(), 1)
}
