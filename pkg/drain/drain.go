package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Drainer drains nodes under one set of policies. It is safe for concurrent use.
type Drainer struct {
	cluster *Cluster
	client  kubernetes.Interface
	opts    Options
	pace    pace
}

// pace is how long a drain waits when no event helps it on.
type pace struct {
	fallback    time.Duration // between tries of blocked pods, per drain
	terminating time.Duration // between tries in a namespace that is being deleted
	first, last time.Duration // backoff after a failed request
	afterDelete time.Duration // beyond the grace period of pods deleted by policy
	hopeless    time.Duration // how long there has to be no hope before the drain ends
	late        time.Duration // after its deletion should be over a pod is late
	node        time.Duration // between looks at the node while pods are late
	look        time.Duration // between looks for a forecast that is followed
}

var defaultPace = pace{
	fallback: 5 * time.Second, terminating: 30 * time.Second,
	first: time.Second, last: 30 * time.Second, afterDelete: 30 * time.Second,
	hopeless: 3 * time.Minute, late: 10 * time.Second, node: 20 * time.Second, look: 2 * time.Second,
}

// maxInFlight bounds the evictions one drain has open at a time.
const maxInFlight = 32

// New makes a Drainer that shares nothing with others; see Cluster for many at a time.
func New(client kubernetes.Interface, opts Options) *Drainer {
	return NewCluster(client).Drainer(opts)
}

// Drain evicts what has to leave the node and waits until it has left. It neither
// cordons nor uncordons: see Take. It returns *Blocked when the pods do not leave, and
// then says which and why; pods that a policy keeps on the node are refused before any
// other pod is evicted.
func (d *Drainer) Drain(ctx context.Context, node string) (Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRun(d, node)
	err := r.drain(ctx)
	r.result.Duration = time.Since(r.start)
	return r.result, err
}

// Check answers whether Drain would be refused at once, and evicts nothing: pods
// that the policies keep on the node, overlapping budgets, missing permissions.
func (d *Drainer) Check(ctx context.Context, node string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRun(d, node)
	defer r.join(ctx)()
	return r.prepare(ctx)
}

func newRun(d *Drainer, node string) *run {
	now := time.Now()
	return &run{
		Drainer:  d,
		node:     node,
		start:    now,
		deadline: now.Add(d.opts.Timeout),
		selector: newSelector(d.client, d.opts),
		entries:  map[types.UID]*entry{},
		ignored:  map[types.UID]bool{},
		wake:     make(chan struct{}, 1),
		results:  make(chan attempt, maxInFlight),
	}
}

// join begins to watch; the returned function leaves what is shared with other drains.
func (r *run) join(ctx context.Context) (leave func()) {
	r.pods = startWatch(ctx, r.client, podsOn(r.client, r.node), func() { signal(r.wake) })
	r.budgets, leave = r.cluster.budgets.join(ctx, r.wake)
	return leave
}

// prepare reads node, pods and budgets and refuses what can be refused at once.
func (r *run) prepare(ctx context.Context) error {
	if err := r.readNode(ctx); err != nil {
		return err
	}
	if err := r.awaitSync(ctx, r.pods, "the pods of node "+r.node); err != nil {
		return r.timedOut(err)
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	if r.unjudged != nil || len(r.entries) == 0 {
		return r.unjudged
	}
	if err := r.awaitSync(ctx, r.budgets, "the PodDisruptionBudgets"); err != nil {
		return r.timedOut(err)
	}
	return r.refuseOverlap()
}

func (r *run) awaitSync(ctx context.Context, w *watched, what string) error {
	timeout := time.NewTimer(time.Until(r.deadline))
	defer timeout.Stop()
	select {
	case <-w.synced:
		return nil
	case <-w.refused:
		return missingPermission(w.refusal)
	case <-timeout.C:
		return fmt.Errorf("listing %s: no answer from the API server within %s", what, r.opts.Timeout)
	case <-ctx.Done():
		return fmt.Errorf("listing %s: %w", what, ctx.Err())
	}
}

// refuseOverlap ends a drain that could never end: under the policy Fail, before it
// has evicted anything.
func (r *run) refuseOverlap() error {
	if r.opts.OnTimeout != ActionFail {
		return nil
	}
	var pods []BlockedPod
	for _, e := range r.ordered() {
		budgets := matching(e.pod, r.budgets)
		if e.state == stateQueued && guarded(e.pod) && len(budgets) > 1 {
			e.hold(ReasonPDBOverlap, overlapMessage(budgets))
			pods = append(pods, e.blocked(namesOf(budgets)))
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return &Blocked{Reason: ReasonPDBOverlap, Message: describe(pods), Permanent: true, Pods: pods}
}

func missingPermission(err error) *Blocked {
	return &Blocked{Reason: ReasonMissingPermission, Message: err.Error() + ": allow it in the ClusterRole of whoever drains", Permanent: true}
}

func (r *run) emit(kind EventKind, pod *corev1.Pod, reason, message string) {
	now := time.Now()
	since, lasting := now, false
	if e := r.entries[pod.UID]; e != nil && kind == EventBlocked {
		budgets := matching(pod, r.budgets)
		since, lasting = e.since, e.state != stateLeaving && (e.comesBack || e.refused || e.vainForGood || len(budgets) == 1 && never(budgets[0]))
	}
	r.opts.Progress(Event{
		Kind: kind, Time: now, Namespace: pod.Namespace, Name: pod.Name,
		Reason: reason, Message: message, Since: since, Lasting: lasting, Total: r.total, Remaining: len(r.entries),
	})
}

// say is emit for what is about the node.
func (r *run) say(kind EventKind, reason, message string) {
	now := time.Now()
	r.opts.Progress(Event{
		Kind: kind, Time: now, Reason: reason, Message: message, Since: now, Total: r.total, Remaining: len(r.entries),
	})
}
