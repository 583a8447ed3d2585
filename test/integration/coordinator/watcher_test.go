package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher samples the cluster from outside and knows nothing of how the coordinator works.
type watcher struct {
	w       *world
	stop    context.CancelFunc
	stopped sync.WaitGroup

	mu         sync.Mutex
	mostAway   int      // nodes cordoned or not ready at once
	grantOrder []string // machines in the order of their grants
	grants     map[string]bool
	complaints []string
}

func (w *world) watch() *watcher {
	ctx, stop := context.WithCancel(w.ctx)
	o := &watcher{w: w, stop: stop, grants: map[string]bool{}}
	o.stopped.Add(1)
	go func() {
		defer o.stopped.Done()
		for ctx.Err() == nil {
			o.sample()
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return o
}

func (o *watcher) end() {
	o.stop()
	o.stopped.Wait()
}

func (o *watcher) sample() {
	ctx := context.Background()
	nodes, machines := &corev1.NodeList{}, &v1alpha1.MachineList{}
	if o.w.admin.List(ctx, machines, client.InNamespace(namespace)) != nil || o.w.admin.List(ctx, nodes) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	away := 0
	cordoned := map[string]bool{}
	for _, n := range nodes.Items {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		cordoned[n.Name] = n.Spec.Unschedulable
		if n.Spec.Unschedulable || !ready {
			away++
		}
	}
	o.mostAway = max(o.mostAway, away)
	for _, m := range machines.Items {
		g := m.Status.Grant
		if g == nil || g.Void || o.grants[g.ID] {
			continue
		}
		o.grants[g.ID] = true
		o.grantOrder = append(o.grantOrder, m.Name)
		if m.Status.Plan != nil && m.Status.Plan.Disruption == v1alpha1.DisruptionDrain && !cordoned[m.Name] && m.Status.Accepted == nil {
			o.complaints = append(o.complaints, fmt.Sprintf("%s was granted while its node was schedulable", m.Name))
		}
	}
}
