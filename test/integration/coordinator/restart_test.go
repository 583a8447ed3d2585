package coordinator

import (
	"context"
	"testing"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The coordinator is killed at each point of the handshake. Whatever it had in memory
// is gone, its lease is still held; the next one goes on from the ledger.
func TestACoordinatorKilledAtAnyPointOfTheHandshakeIsSucceeded(t *testing.T) {
	points := []struct {
		name   string
		linger func(h *host) // keeps the handshake at the point
		at     func(w *world) bool
		resume func(h *host)
	}{
		{"assigned", func(h *host) {
			h.deaf = false
			h.Refuse = &v1alpha1.Failure{Reason: "RepositoryAway", Message: "later"}
		},
			func(w *world) bool { return w.machine("w1").Status.Assignment != nil },
			func(h *host) { h.Refuse = nil }},
		{"draining", func(h *host) { h.stuckPods = true },
			func(w *world) bool { return w.condition("w1", v1alpha1.ConditionDrained).Reason == "Draining" },
			func(h *host) { h.stuckPods = false }},
		{"granted", func(h *host) { h.Hold = false; h.AcceptDelay = 3 * time.Second },
			func(w *world) bool { g := w.machine("w1").Status.Grant; return g != nil && !g.Void },
			func(h *host) { h.AcceptDelay = 0 }},
		{"accepted", func(h *host) { h.WorkTime = 4 * time.Second },
			func(w *world) bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotAccepted },
			func(*host) {}},
		{"verifying", func(h *host) { h.Sick = true },
			func(w *world) bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotVerifying },
			func(h *host) { h.Sick, h.Ready = false, true }},
	}
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			w := newWorld(t)
			w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
			h := w.host("w1", "workers", v1alpha1.RoleWorker)
			w.host("w2", "workers", v1alpha1.RoleWorker).set(func(h *host) { h.Kubelet = newK8s })
			h.set(p.linger)
			w.pod("app", "w1", true)
			w.pool("workers", workerAt(newK8s))
			w.start()
			w.until("the handshake is "+p.name, func() bool { return p.at(w) })
			w.kill()
			slotBefore := w.slot("w1")
			h.set(p.resume)
			w.start()
			w.untilUpToDate("w1", "w2")
			assert.Len(t, h.RanUnder(), 1, "the host did its work once")
			if slotBefore != nil {
				assert.Equal(t, slotBefore.GrantID, h.RanUnder()[0], "under the grant that was reserved before")
			}
			assert.False(t, w.node("w1").Spec.Unschedulable)
			assert.Empty(t, w.ledger().Slots)
			assert.GreaterOrEqual(t, w.ledger().Epoch, int64(2), "the second leader has an epoch of its own")
			require.Len(t, w.machine("w1").Status.History, 1)
		})
	}
}

func TestAnEvictedLeaderHandsOverAtOnce(t *testing.T) {
	w := newWorld(t)
	const lease = 2 * patience // whoever has to wait for it comes too late
	w.host("cp1", "", v1alpha1.RoleControlPlane)
	w.startWithLease(lease)
	w.until("it leads", func() bool { return w.ledger().Epoch == 1 })
	w.stop()
	w.startWithLease(lease)
	w.until("the next one leads: the lease was given up, not waited for", func() bool { return w.ledger().Epoch == 2 })
}

func TestAnOutageOfTheAPIServerInMidUpgradeLosesNothing(t *testing.T) {
	w := newWorld(t)
	h := w.host("cp1", "cp", v1alpha1.RoleControlPlane)
	w.host("w1", "", v1alpha1.RoleWorker)
	h.set(func(h *host) { h.WorkTime = 8 * time.Second })
	w.pool("cp", planeAt(newK8s))
	w.start()
	w.until("the host works", func() bool { s := w.slot("cp1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	require.NoError(t, server.KillAPI())
	time.Sleep(6 * time.Second) // longer than the lease: the leader ends
	w.mu.Lock()
	ended := make(chan error, 1)
	cmd := w.coordinator
	w.coordinator = nil
	w.mu.Unlock()
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		require.Fail(t, "a leader that cannot renew its lease must end")
	}
	w.start() // as the kubelet does; it waits for the API server
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, server.StartAPI(ctx))
	w.untilUpToDate("cp1")
	assert.Len(t, h.RanUnder(), 1)
	assert.Equal(t, newK8s, h.APIServer)
	assert.False(t, w.node("cp1").Spec.Unschedulable)
}

func TestALostLedgerIsRebuiltFromTheMachines(t *testing.T) {
	w := newWorld(t)
	w.host("cp1", "", v1alpha1.RoleControlPlane).set(func(h *host) { h.Kubelet, h.APIServer = newK8s, newK8s })
	h := w.host("w1", "workers", v1alpha1.RoleWorker)
	w.host("w2", "workers", v1alpha1.RoleWorker)
	h.set(func(h *host) { h.WorkTime = 4 * time.Second })
	w.hosts["w2"].set(func(h *host) { h.Hold = true })
	w.pool("workers", workerAt(newK8s))
	w.start()
	w.until("w1 works", func() bool { s := w.slot("w1"); return s != nil && s.State == v1alpha1.SlotAccepted })
	epoch := w.ledger().Epoch
	w.kill()
	require.NoError(t, w.admin.DeleteAllOf(context.Background(), &v1alpha1.Ledger{}, inNamespace))
	w.hosts["w2"].set(func(h *host) { h.Hold = false })
	watcher := w.watch()
	w.start()
	w.until("the slot is back", func() bool { return w.slot("w1") != nil })
	assert.Greater(t, w.ledger().Epoch, epoch, "no agent is muted")
	w.untilUpToDate("w1", "w2")
	watcher.end()
	assert.Equal(t, 1, watcher.mostAway)
	assert.Len(t, h.RanUnder(), 1)
}
