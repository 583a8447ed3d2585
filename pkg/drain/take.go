package drain

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// giveBackTimeout bounds how long a node is tried to be given back after its drain has failed.
const giveBackTimeout = 30 * time.Second

// Take cordons the node in the owner's name, takes it out of external load balancers and
// drains it. When that fails, or ctx ends, the node is given back at once. When it
// succeeds the node stays cordoned until Uncordon.
func (d *Drainer) Take(ctx context.Context, node, owner string) (Result, error) {
	cordon, err := Cordon(ctx, d.client, node, owner, d.opts.LoadBalancers)
	switch {
	case err != nil:
		return Result{}, err
	case cordon.Uncordoned:
		return Result{}, &Blocked{Reason: ReasonUncordoned, Message: fmt.Sprintf("someone has made node %s schedulable since it was cordoned", node)}
	}
	result, err := d.Drain(ctx, node)
	if err != nil {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
		defer cancel()
		err = errors.Join(err, Persist(back, func() error { return Uncordon(back, d.client, node, owner) }))
	}
	return result, err
}
