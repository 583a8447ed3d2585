package etcd

import (
	"context"
	"fmt"
	"strconv"
)

// MoveLeader hands the leadership to another member. Only the one that leads can do so, and it
// is this host's own endpoint that is asked.
func (e *Etcd) MoveLeader(ctx context.Context, to string) error {
	id, err := strconv.ParseUint(to, 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no id of a member of etcd", to)
	}
	a, err := e.Access(ctx)
	if err != nil {
		return err
	}
	if a == nil || !a.Member {
		return ErrNone
	}
	client, err := e.connect(a, a.Endpoints...)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // nothing is written through it
	ctx, cancel := context.WithTimeout(ctx, 2*e.Timeout)
	defer cancel()
	if _, err := client.MoveLeader(ctx, id); err != nil {
		return fmt.Errorf("handing the leadership of etcd to member %s: %w", to, err)
	}
	return nil
}
