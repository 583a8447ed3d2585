package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/refit-dev/refit/agent/host/waiting"
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
