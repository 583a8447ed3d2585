package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/refit-dev/refit/pkg/drain"
)

// Runner drains nodes one after another. All fields but KeepCordon are needed.
type Runner struct {
	Kube    kubernetes.Interface
	Options drain.Options
	Report  Reporter
	// KeepCordon leaves a node cordoned that could not be drained.
	KeepCordon bool
	// Heartbeat is the time between two words on how far it is when nothing else happens.
	Heartbeat time.Duration
}

// giveBackTimeout bounds how long a node is tried to be given back.
const giveBackTimeout = 30 * time.Second

// Run cordons all nodes, so that no pod moves from one to the next, and drains them one
// after another. A node that cannot be drained does not keep the others. The error has
// what kept each; a node for which it has nothing is drained.
func (r *Runner) Run(ctx context.Context, nodes []string) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	holds := make([]*held, 0, len(nodes))
	for _, node := range nodes {
		n, changed, err := cordon(ctx, r.Kube, node)
		if err != nil {
			return errors.Join(err, r.giveBackAll(ctx, holds))
		}
		holds = append(holds, hold(following, r.Kube, n, changed))
		r.Report.Cordoned(node, changed)
	}
	cluster := drain.NewCluster(r.Kube)
	var errs []error
	for i, h := range holds {
		if ctx.Err() != nil {
			errs = append(errs, r.giveBackAll(ctx, holds[i:]))
			break
		}
		if err := r.drain(ctx, cluster, h); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", h.node, err), r.giveBack(ctx, h))
		}
	}
	return errors.Join(errs...)
}

// drain passes on what happens, and says now and then how far it is. Everything is
// reported from this goroutine.
func (r *Runner) drain(ctx context.Context, cluster *drain.Cluster, h *held) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	node, gone := h.node, h.gone
	type outcome struct {
		result drain.Result
		err    error
	}
	done, news := make(chan outcome, 1), make(chan drain.Event, 256)
	ended := make(chan struct{})
	defer close(ended)
	opts := r.Options
	opts.Progress = func(e drain.Event) {
		select {
		case news <- e:
		case <-ended:
		}
	}
	go func() {
		result, err := cluster.Drainer(opts).Drain(ctx, node)
		done <- outcome{result, err}
	}()
	beat := time.NewTicker(r.Heartbeat)
	defer beat.Stop()
	p := newProgress()
	for {
		select {
		case e := <-news:
			p.take(e)
			r.Report.Event(node, e)
			beat.Reset(r.Heartbeat)
		case <-beat.C:
			r.Report.Still(node, p)
		case <-gone:
			gone = nil
			stop()
		case o := <-done:
			if o.err != nil && gone == nil {
				o.err = Gone{node}
			}
			for len(news) > 0 {
				r.Report.Event(node, <-news)
			}
			r.ended(ctx, h, o.result, o.err)
			return o.err
		}
	}
}

// ended tells the outcome, and of a drained node what its cordon has come to.
func (r *Runner) ended(ctx context.Context, h *held, result drain.Result, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	end := End{Result: result, Err: err, Flags: r.flags(ctx, h.node, err)}
	if err == nil {
		end.Cordon, end.Kept = h.stays(ctx, r.Kube)
	}
	r.Report.Ended(h.node, end)
}

// giveBackAll tries all of them at a time: an API server that is away keeps none from its turn.
func (r *Runner) giveBackAll(ctx context.Context, holds []*held) error {
	outcomes := make([]givenBack, len(holds))
	var all sync.WaitGroup
	for i, h := range holds {
		all.Go(func() { outcomes[i] = r.tryGiveBack(ctx, h) })
	}
	all.Wait()
	var errs []error
	for i, h := range holds {
		errs = append(errs, r.tellGivenBack(h, outcomes[i]))
	}
	return errors.Join(errs...)
}

// giveBack takes our cordon off, also when the time of ctx is over.
func (r *Runner) giveBack(ctx context.Context, h *held) error {
	return r.tellGivenBack(h, r.tryGiveBack(ctx, h))
}

// givenBack is what has become of a node.
type givenBack struct {
	how string
	err error
}

func (r *Runner) tryGiveBack(ctx context.Context, h *held) givenBack {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	how, err := h.giveBack(ctx, r.Kube, r.KeepCordon)
	return givenBack{how, err}
}

func (r *Runner) tellGivenBack(h *held, o givenBack) error {
	switch {
	case o.err != nil && h.ours && !r.KeepCordon:
		return fmt.Errorf("giving node %s back (kubectl uncordon %s does it): %w", h.node, h.node, o.err)
	case o.err != nil:
		o.how = fmt.Sprintf("it is left as it is; whether it is still cordoned could not be read: %v", o.err)
	}
	r.Report.GivenBack(h.node, o.how)
	return nil
}

// Blocked says that err is nothing but drains that pods stand in the way of, or whose node is gone.
func Blocked(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // it takes apart what was joined
		for _, one := range joined.Unwrap() {
			if !Blocked(one) {
				return false
			}
		}
		return true
	}
	var b *drain.Blocked
	return errors.As(err, &b) || errors.As(err, &Gone{})
}
