package drain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Drainer drains nodes under one set of policies. It is safe for concurrent use.
type Drainer struct {
	client kubernetes.Interface
	opts   Options
	pace   pace
}

// pace is how long a drain waits when no event helps it on.
type pace struct {
	fallback    time.Duration // between tries of blocked pods, per drain
	terminating time.Duration // between tries in a namespace that is being deleted
	first, last time.Duration // backoff after a failed request
	afterDelete time.Duration // beyond the grace period of pods deleted by policy
	hopeless    time.Duration // how long a budget has to rule out every disruption before the drain ends
}

var defaultPace = pace{
	fallback: 5 * time.Second, terminating: 30 * time.Second,
	first: time.Second, last: 30 * time.Second, afterDelete: 30 * time.Second,
	hopeless: 3 * time.Minute,
}

// maxInFlight bounds the evictions one drain has open at a time.
const maxInFlight = 32

// New makes a Drainer.
func New(client kubernetes.Interface, opts Options) *Drainer {
	return &Drainer{client: client, opts: opts.withDefaults(), pace: defaultPace}
}

// Drain evicts what has to leave the node and waits until it has left. It neither
// cordons nor uncordons. It returns *Blocked when the pods do not leave, and then
// says which and why; pods that a policy keeps on the node are refused before any
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
		taken:    map[string]int32{},
		wake:     make(chan struct{}, 1),
		results:  make(chan attempt, maxInFlight),
	}
}

// prepare reads pods and budgets and refuses what can be refused at once.
func (r *run) prepare(ctx context.Context) error {
	r.pods = watchPods(ctx, r.client, r.node, r.wake)
	if err := r.awaitPods(ctx); err != nil {
		return err
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	if r.unjudged != nil || len(r.entries) == 0 {
		return r.unjudged
	}
	if err := r.readBudgets(ctx); err != nil {
		return err
	}
	return r.refuseOverlap()
}

func (r *run) awaitPods(ctx context.Context) error {
	timeout := time.NewTimer(time.Until(r.deadline))
	defer timeout.Stop()
	select {
	case <-r.pods.synced:
		return nil
	case err := <-r.pods.denied:
		return missingPermission(err)
	case <-timeout.C:
		return fmt.Errorf("listing the pods of node %s: no answer from the API server within %s", r.node, r.opts.Timeout)
	case <-ctx.Done():
		return fmt.Errorf("listing the pods of node %s: %w", r.node, ctx.Err())
	}
}

func (r *run) readBudgets(ctx context.Context) error {
	list, err := r.client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return missingPermission(fmt.Errorf("listing poddisruptionbudgets: %w", err))
	}
	if err != nil {
		return fmt.Errorf("listing poddisruptionbudgets: %w", err)
	}
	for i := range list.Items {
		r.snapshot = append(r.snapshot, &list.Items[i])
	}
	return nil
}

// refuseOverlap ends a drain that could never end: under the policy Fail, before it
// has evicted anything.
func (r *run) refuseOverlap() error {
	if r.opts.OnTimeout != ActionFail {
		return nil
	}
	var pods []BlockedPod
	for _, e := range r.ordered() {
		budgets := matching(e.pod, r.snapshot)
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

// budgets are those of the watch once it has synced, before that those listed at the start.
func (r *run) budgets() []*policyv1.PodDisruptionBudget {
	if r.budgetWatch != nil && r.budgetWatch.hasSynced() {
		return listOf[*policyv1.PodDisruptionBudget](r.budgetWatch)
	}
	return r.snapshot
}

func (r *run) emit(kind EventKind, pod *corev1.Pod, reason, message string) {
	now := time.Now()
	since, lasting := now, false
	if e := r.entries[pod.UID]; e != nil && kind == EventBlocked {
		budgets := matching(pod, r.budgets())
		since, lasting = e.since, len(budgets) == 1 && never(budgets[0])
	}
	r.opts.Progress(Event{
		Kind: kind, Time: now, Namespace: pod.Namespace, Name: pod.Name,
		Reason: reason, Message: message, Since: since, Lasting: lasting, Total: r.total, Remaining: len(r.entries),
	})
}
