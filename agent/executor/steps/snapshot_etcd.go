package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// snapshotEtcd takes the one thing from which a cluster could be made again by a person, should a
// hop go wrong in what kubeadm moves forward. Nothing puts it back by itself. Where it is comes
// to the agent by a file, which it may read while the operation goes on.
func snapshotEtcd(ctx context.Context, r Run) (string, error) {
	taken, err := r.Host.Etcd.Snapshot(ctx, r.Operation)
	if err != nil {
		var blocked *upgrade.Blocked
		if errors.As(err, &blocked) {
			return "", blocked
		}
		return "", fail("EtcdSnapshotFailed", "%v", err)
	}
	text, err := json.Marshal(taken)
	if err != nil {
		return "", fmt.Errorf("recording the snapshot of etcd: %w", err)
	}
	if err := r.Host.Files.Write(upgrade.EtcdSnapshotRecord, append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("recording the snapshot of etcd: %w", err)
	}
	return fmt.Sprintf("%s, revision %d, sha256 %s", taken.Path, taken.Revision, taken.SHA256), nil
}
