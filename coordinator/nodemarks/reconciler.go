package nodemarks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/ledger"
	"github.com/refit-dev/refit/pkg/drain"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Writes of one namespace: so many in a second, and so many at once.
const (
	perSecond = 10
	atOnce    = 10
	pause     = time.Second / perSecond
)

// Orphans is the request for the nodes that no Machine stands for any more; no namespace has that name.
const Orphans = ""

// Reconciler marks the nodes of one namespace; the request names the namespace.
type Reconciler struct {
	// Machines, MachineDeployments and Nodes are read from caches.
	Machines, Nodes client.Reader
	// Workload is the cluster that has the nodes.
	Workload kubernetes.Interface
	// Ledger of the slots.
	Ledger *ledger.Store
	// Now is the clock.
	Now func() time.Time
	// Deposed is called when another coordinator has taken over.
	Deposed func(error)

	memory fleet.Memory
	mu     sync.Mutex
	limits map[string]flowcontrol.PassiveRateLimiter
}

// Reconcile writes the marks that differ, as many as may be written now.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	changes, err := r.changes(ctx, req.Name)
	if errors.Is(err, ledger.ErrDeposed) {
		r.Deposed(err)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, c := range changes {
		if !r.limit(req.Name).TryAccept() {
			return ctrl.Result{RequeueAfter: pause}, nil
		}
		if err := r.write(ctx, c); err != nil && !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("marking the nodes of namespace %s: %w", req.Name, err)
		}
	}
	return ctrl.Result{}, nil
}

// change is one write.
type change struct {
	node  string
	marks *drain.Marks // nil: the node is given back as it was
}

func (r *Reconciler) write(ctx context.Context, c change) error {
	if c.marks == nil {
		_, err := drain.Clear(ctx, r.Workload, c.node)
		return err //nolint:wrapcheck // wrapped by the caller
	}
	return drain.Mark(ctx, r.Workload, c.node, *c.marks) //nolint:wrapcheck // wrapped by the caller
}

func (r *Reconciler) changes(ctx context.Context, namespace string) ([]change, error) {
	nodes := &corev1.NodeList{}
	if err := r.Nodes.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil { // it is only read
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	wanted, err := r.wanted(ctx, namespace, nodes)
	if err != nil {
		return nil, err
	}
	var out []change
	for i := range nodes.Items {
		n := &nodes.Items[i]
		switch m, known := wanted[n.Name]; {
		case known && m == nil && drain.Lasts(n), known && m != nil && !m.On(n):
			out = append(out, change{n.Name, m})
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return cmp.Compare(rank(a.marks), rank(b.marks)) })
	return out, nil
}

// rank lets pods onto nodes that are finished before it keeps them from others.
func rank(m *drain.Marks) int {
	if m != nil && m.Outdated {
		return 1
	}
	return 0
}

// wanted are the marks by node; of nodes that are none of the namespace's nothing is said.
func (r *Reconciler) wanted(ctx context.Context, namespace string, nodes *corev1.NodeList) (map[string]*drain.Marks, error) {
	if namespace == Orphans {
		return r.orphans(ctx, nodes)
	}
	if err := r.Ledger.Lead(ctx, namespace); err != nil {
		return nil, fmt.Errorf("leading namespace %s: %w", namespace, err)
	}
	l, err := r.Ledger.Read(ctx, namespace)
	if apierrors.IsNotFound(err) {
		r.Ledger.Forget(namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("marking the nodes of namespace %s: %w", namespace, err)
	}
	f, err := r.memory.Load(ctx, fleet.Readers{Machines: r.Machines, Nodes: r.Nodes}, l, r.Now())
	if err != nil {
		return nil, fmt.Errorf("reading the fleet of namespace %s: %w", namespace, err)
	}
	out := map[string]*drain.Marks{}
	for _, m := range f.Machines {
		marks := Wanted(f, m)
		out[m.Name] = &marks
	}
	return out, nil
}

// orphans are the nodes that no Machine of any namespace stands for: someone has forced
// it out, or a mark was written on an old reading.
func (r *Reconciler) orphans(ctx context.Context, nodes *corev1.NodeList) (map[string]*drain.Marks, error) {
	machines := &v1alpha1.MachineList{}
	if err := r.Machines.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil { // it is only read
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	out := map[string]*drain.Marks{}
	for i := range nodes.Items {
		out[nodes.Items[i].Name] = nil
	}
	for i := range machines.Items {
		delete(out, machines.Items[i].Name)
	}
	return out, nil
}

func (r *Reconciler) limit(namespace string) flowcontrol.PassiveRateLimiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limits == nil {
		r.limits = map[string]flowcontrol.PassiveRateLimiter{}
	}
	if r.limits[namespace] == nil {
		r.limits[namespace] = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(perSecond, atOnce, clock(r.Now))
	}
	return r.limits[namespace]
}

// clock is the coordinator's, as the limiter wants it.
type clock func() time.Time

func (c clock) Now() time.Time                  { return c() }
func (c clock) Since(t time.Time) time.Duration { return c().Sub(t) }
