// Package checks asks the questions that stand between a machine and its place: expressions
// over the objects of the cluster, and queries of Prometheus. Asking takes time and may
// fail, so it is done beside the rollout, whose gate judges the answers that are known.
package checks

import (
	"context"
	"sync"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Every is how often one question is asked at most.
	Every = 10 * time.Second
	// askTimeout bounds one answer.
	askTimeout = 8 * time.Second
	// mostAtOnce questions are open.
	mostAtOnce = 8
	// keeps is how long an answer is kept that nobody asks for any more.
	keeps = 10 * time.Minute
)

// Question is a check of a pool, for one of its machines that waits for it.
type Question struct {
	Check   v1alpha1.Check
	Machine *fleet.Machine
}

// Book of the answers. All exported fields are needed.
type Book struct {
	// Base ends everything that is asked.
	Base context.Context //nolint:containedctx // an answer outlives the reconcile that asks for it
	// Nodes reads the nodes' cluster from a cache.
	Nodes client.Reader
	// Workload is the cluster that has the nodes.
	Workload kubernetes.Interface
	// Changed is told in which namespace there is another answer.
	Changed func(namespace string)
	// Now is the clock.
	Now func() time.Time

	compiler Compiler
	mu       sync.Mutex
	known    map[key]*answer
	open     chan struct{}
}

// key tells questions apart: with another text a check is another question.
type key struct{ namespace, pool, machine, cel, url, query string }

type answer struct {
	outcome fleet.CheckOutcome
	given   bool
	asked   time.Time
	open    bool
}

// Known is the last answer, if there is one. What can never be asked needs no asking.
func (b *Book) Known(q Question) (fleet.CheckOutcome, bool) {
	if err := b.compiler.Invalid([]v1alpha1.Check{q.Check}); err != nil {
		return fleet.CheckOutcome{State: fleet.CheckInvalid, Message: err.Error(), At: b.Now()}, true
	}
	k := b.key(q)
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.known[k]
	if a == nil || !a.given {
		return fleet.CheckOutcome{}, false
	}
	return a.outcome, true
}

// Ask has the questions answered that are due, and does not wait for it.
func (b *Book) Ask(all []Question) {
	worlds := map[*fleet.Pool]*world{}
	for _, q := range all {
		k, now := b.key(q), b.Now()
		if !b.due(k, now) {
			continue
		}
		w := worlds[q.Machine.Pool]
		if w == nil {
			w = &world{pool: q.Machine.Pool, nodes: b.Nodes, pods: b.Workload, most: mostPods}
			worlds[q.Machine.Pool] = w
		}
		go b.answer(k, q, w, now)
	}
}

func (b *Book) key(q Question) key {
	k := key{namespace: q.Machine.Namespace, pool: q.Machine.Pool.Name, cel: q.Check.CEL}
	if p := q.Check.Prometheus; p != nil {
		k.url, k.query = p.URL, p.Query
	}
	if q.Check.CEL != "" && b.compiler.compile(q.Check.CEL).ofOne() {
		k.machine = q.Machine.Name
	}
	return k
}

// due marks the question as asked where it may be.
func (b *Book) due(k key, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known, b.open = map[key]*answer{}, make(chan struct{}, mostAtOnce)
	}
	for other, a := range b.known {
		if !a.open && now.Sub(a.asked) > keeps {
			delete(b.known, other)
		}
	}
	a := b.known[k]
	if a == nil {
		a = &answer{}
		b.known[k] = a
	} else if a.open || now.Sub(a.asked) < Every {
		return false
	}
	a.open, a.asked = true, now
	return true
}

// answer asks one question. The answer counts from before it was asked.
func (b *Book) answer(k key, q Question, w *world, asked time.Time) {
	select {
	case b.open <- struct{}{}:
		defer func() { <-b.open }()
	case <-b.Base.Done():
		return
	}
	ctx, cancel := context.WithTimeout(b.Base, askTimeout)
	defer cancel()
	out := fleet.CheckOutcome{At: asked}
	if q.Check.Prometheus != nil {
		out.State, out.Message = query(ctx, q.Check.Prometheus)
	} else {
		out.State, out.Message = evaluate(ctx, b.compiler.compile(q.Check.CEL), w, q.Machine)
	}
	b.mu.Lock()
	if a := b.known[k]; a != nil {
		a.outcome, a.given, a.open = out, true, false
	}
	b.mu.Unlock()
	b.Changed(k.namespace)
}
