package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/refit-dev/refit/agent/host/waiting"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// guardEtcd is the last look before this host is disturbed: every member with a vote is started,
// healthy and caught up, and a quorum is left without the one here. A member may be on its way
// back, so it is waited for until the step's deadline; then the step fails with what is
// wrong, and nothing has been touched for it.
func guardEtcd(ctx context.Context, r Run) (string, error) {
	start := time.Now()
	said := ""
	err := awaitSlowly(ctx, r.Poll, func(ctx context.Context) error {
		facts, err := etcdNow(ctx, r.Host)
		if err == nil {
			if err = facts.Safe(r.Step.Accept); err == nil {
				said = fmt.Sprintf("%d members of etcd, all as they should be", len(facts.Members))
			}
		}
		if err != nil {
			waiting.For(ctx, fmt.Sprintf("waiting for etcd since %s: %v", start.UTC().Format(time.RFC3339), err))
		}
		return err
	})
	waiting.Over(ctx)
	return said, err
}

// stillGuarded looks once more right before the member here is taken away: packages were installed
// since GuardEtcd, and between the two an executor may have ended and gone on much later. Half of the step's
// time is left for the step. Once the member was away, what is begun is brought to its end.
func stillGuarded(ctx context.Context, r Run) error {
	at := slices.IndexFunc(r.Plan.Steps, func(s upgrade.Step) bool { return s.Kind == upgrade.StepGuardEtcd })
	if at < 0 || r.Attempt > 1 {
		return nil
	}
	r.Step = r.Plan.Steps[at]
	if deadline, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	_, err := guardEtcd(ctx, r)
	return err
}
