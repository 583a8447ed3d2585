package drain

import (
	"context"
	"errors"
	"fmt"
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
	ours := map[string]bool{}
	for i, node := range nodes {
		changed, err := cordon(ctx, r.Kube, node)
		if err != nil {
			return errors.Join(err, r.giveBackAll(ctx, nodes[:i], ours))
		}
		ours[node] = changed
		r.Report.Cordoned(node, changed)
	}
	cluster := drain.NewCluster(r.Kube)
	var errs []error
	for i, node := range nodes {
		if ctx.Err() != nil {
			errs = append(errs, r.giveBackAll(ctx, nodes[i:], ours))
			break
		}
		if err := r.drain(ctx, cluster, node); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", node, err), r.giveBack(ctx, node, ours[node]))
		}
	}
	return errors.Join(errs...)
}

// drain passes on what happens, and says now and then how far it is. Everything is
// reported from this goroutine.
func (r *Runner) drain(ctx context.Context, cluster *drain.Cluster, node string) error {
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
		case o := <-done:
			for len(news) > 0 {
				r.Report.Event(node, <-news)
			}
			r.Report.Ended(node, o.result, o.err)
			return o.err
		}
	}
}

func (r *Runner) giveBackAll(ctx context.Context, nodes []string, ours map[string]bool) error {
	var errs []error
	for _, node := range nodes {
		errs = append(errs, r.giveBack(ctx, node, ours[node]))
	}
	return errors.Join(errs...)
}

// giveBack takes our cordon off, also when the time of ctx is over.
func (r *Runner) giveBack(ctx context.Context, node string, ours bool) error {
	switch {
	case !ours:
		r.Report.GivenBack(node, "it stays cordoned, as it was before")
		return nil
	case r.KeepCordon:
		r.Report.GivenBack(node, "it stays cordoned, as --keep-cordon asks")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if err := uncordon(ctx, r.Kube, node); err != nil {
		return fmt.Errorf("giving node %s back (kubectl uncordon %s does it): %w", node, node, err)
	}
	r.Report.GivenBack(node, "uncordoned: it takes pods again")
	return nil
}

// Blocked says that err is nothing but drains that pods stand in the way of.
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
	return errors.As(err, &b)
}
