package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leader is the pod that leads and the host that it is on; "" for none.
func (e *Env) leader(ctx context.Context) (pod, host string, lease *coordinationv1.Lease) {
	lease, err := e.Kube.CoordinationV1().Leases(SystemNamespace).Get(ctx, "refit-coordinator", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", "", nil
	}
	pod, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	p, err := e.Kube.CoreV1().Pods(SystemNamespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil || p.Status.Phase != corev1.PodRunning {
		return "", "", nil
	}
	return pod, p.Spec.NodeName, lease
}

// leaderKiller kills whoever leads, at moments drawn from a seed, until it is stopped.
type leaderKiller struct {
	env    *Env
	cancel context.CancelFunc
	done   chan struct{}
	kills  []string
}

func (e *Env) startLeaderKiller(ctx context.Context, t *testing.T, seed uint64) *leaderKiller {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	k := &leaderKiller{env: e, cancel: cancel, done: make(chan struct{})}
	go k.run(ctx, t, rand.New(rand.NewPCG(seed, 0)))
	return k
}

func (k *leaderKiller) run(ctx context.Context, t *testing.T, draw *rand.Rand) {
	defer close(k.done)
	begin, last := time.Now(), ""
	for {
		// The next leader gets between nothing and 20 seconds to do something.
		pause := time.Duration(draw.IntN(20_000)) * time.Millisecond
		holder := k.awaitOther(ctx, last)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pod, name, lease := k.env.leader(ctx)
		h := k.env.Fleet.Host(name)
		if lease == nil || h == nil || *lease.Spec.HolderIdentity != holder {
			continue
		}
		if _, err := h.Exec(ctx, nil, "pkill", "-KILL", "-f", "^/refit-coordinator"); err != nil {
			if ctx.Err() == nil {
				assert.NoError(t, err)
			}
			continue
		}
		last = holder
		k.kills = append(k.kills, fmt.Sprintf("%s on %s after %s", pod, name, time.Since(begin).Round(100*time.Millisecond)))
		k.env.Say("          >>> SIGKILL of the leader %s on %s", pod, name)
	}
}

// awaitOther waits until somebody leads who is not the one that was killed, and returns it.
func (k *leaderKiller) awaitOther(ctx context.Context, killed string) string {
	for ctx.Err() == nil {
		if _, _, lease := k.env.leader(ctx); lease != nil && *lease.Spec.HolderIdentity != killed {
			return *lease.Spec.HolderIdentity
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return ""
}

// Stop ends it and says who was killed when.
func (k *leaderKiller) Stop() []string {
	k.cancel()
	<-k.done
	return k.kills
}
