package steps

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Etcd is the etcd that this host's control plane stores in.
type Etcd interface {
	// Look asks every member; nil where this host has no etcd.
	Look(ctx context.Context) (*upgrade.EtcdFacts, error)
	// MoveLeader hands the leadership of this host's member to another one.
	MoveLeader(ctx context.Context, to string) error
	// Snapshot takes a snapshot for an operation, verified; the same one when asked again.
	Snapshot(ctx context.Context, operation string) (upgrade.EtcdSnapshot, error)
}

// reasonEtcdUnreachable: nobody could be asked, so nothing is known to be safe.
const reasonEtcdUnreachable = "EtcdUnreachable"

// etcdNow is what the members say; that nobody says anything is no permission.
func etcdNow(ctx context.Context, h *Host) (upgrade.EtcdFacts, error) {
	facts, err := h.Etcd.Look(ctx)
	if err != nil {
		return upgrade.EtcdFacts{}, fail(reasonEtcdUnreachable, "the members of etcd could not be asked: %v", err)
	}
	if facts == nil {
		return upgrade.EtcdFacts{}, fail("HostChanged", "the plan was made for a host with etcd, and it shows none: a new plan is needed")
	}
	return *facts, nil
}

// etcdRuns says that the member on this host is of a version, as it says itself.
func etcdRuns(ctx context.Context, h *Host, want string) error {
	if want == "" {
		return nil
	}
	facts, err := etcdNow(ctx, h)
	if err != nil {
		return err
	}
	own := facts.Own()
	switch {
	case own == nil || own.Version == "":
		return fail(upgrade.FindingEtcdUnhealthy, "the member of etcd on this host does not say its version: see that it runs and is in the list of members")
	case !upgrade.SameRuntime(own.Version, want):
		return fail("EtcdVersionMismatch", "the member of etcd on this host runs %s, wanted %s", own.Version, want)
	}
	return nil
}

// etcdMemberIs waits for nobody: verify looks again until its time is up.
func etcdMemberIs(ctx context.Context, h *Host, want bool) error {
	if !want {
		return nil
	}
	facts, err := etcdNow(ctx, h)
	if err != nil {
		return err
	}
	return facts.OwnCaughtUp() //nolint:wrapcheck // says which member and why
}

// etcdSays is what there is to say of etcd beside a failure of kubeadm's; "" where all is well with
// the member on this host, or nothing is known.
func etcdSays(ctx context.Context, h *Host) string {
	facts, err := h.Etcd.Look(ctx)
	if err != nil {
		return fmt.Sprintf("; etcd of this host: %v", err)
	}
	if facts == nil || facts.Member == "" {
		return ""
	}
	if err := facts.OwnCaughtUp(); err != nil {
		return fmt.Sprintf("; etcd: %v; its data is never put back by Refit, the snapshot of before the hop is in status.etcdSnapshot of the Machine that went first", err)
	}
	return ""
}
