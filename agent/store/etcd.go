package store

import (
	"encoding/json"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// EtcdSnapshot is the newest one that the executor has taken here; nil where it took none, or its
// record cannot be read: what was reported stays then.
func (s *Store) EtcdSnapshot() *v1alpha1.EtcdSnapshot {
	text, err := os.ReadFile(filepath.Join(s.dir, "etcd", filepath.Base(upgrade.EtcdSnapshotRecord)))
	if err != nil {
		return nil
	}
	var taken upgrade.EtcdSnapshot
	if json.Unmarshal(text, &taken) != nil || taken.Path == "" || len(taken.Path) > 256 || len(taken.SHA256) > 64 {
		return nil
	}
	return &v1alpha1.EtcdSnapshot{Path: taken.Path, Revision: taken.Revision, SHA256: taken.SHA256, Time: metav1.NewTime(taken.Time.UTC())}
}
