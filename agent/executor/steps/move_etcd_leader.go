package steps

import (
	"context"
	"fmt"
)

// moveEtcdLeader hands the leadership to another member before this one goes away: the others
// need not miss it first. Where nobody can follow there is one member, or GuardEtcd has spoken.
func moveEtcdLeader(ctx context.Context, r Run) (string, error) {
	facts, err := etcdNow(ctx, r.Host)
	if err != nil {
		return "", err
	}
	heir, leads := facts.Heir()
	if !leads {
		return "the member on this host does not lead, or nobody can follow it", nil
	}
	if err := r.Host.Etcd.MoveLeader(ctx, heir.ID); err != nil {
		return "", fail("EtcdLeaderNotMoved", "%v", err)
	}
	err = await(ctx, r.Poll, func(ctx context.Context) error {
		now, err := etcdNow(ctx, r.Host)
		if err != nil {
			return err
		}
		if now.Leader == "" || now.Leader == now.Member {
			return fail("EtcdLeaderNotMoved", "the leadership of etcd was handed to %s, and the member on this host still leads or nobody does", heir.Label())
		}
		return nil
	})
	return fmt.Sprintf("%s leads etcd", heir.Label()), err
}
