package testfleet

import (
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fleet/cluster"
)

// Requests lists what the API servers of the fleet's control planes were asked from start until end.
func (f *Fleet) Requests(start, end time.Time) ([]audit.Request, error) {
	var out []audit.Request
	for _, h := range f.Hosts() {
		if !h.ControlPlane() {
			continue
		}
		of, err := audit.Between(filepath.Join(h.RootDir(), cluster.AuditLog), start, end)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}
