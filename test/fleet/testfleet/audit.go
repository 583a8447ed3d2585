package testfleet

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/fleet/cluster"
)

// AuditLog is what the API servers of the fleet's control planes have written down, in the order of their answers.
func (f *Fleet) AuditLog() (audit.Log, error) {
	var out audit.Log
	for _, h := range f.Hosts() {
		if !h.ControlPlane() {
			continue
		}
		log, err := audit.Load(filepath.Join(h.RootDir(), cluster.AuditLog))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing yet
			return nil, err
		}
		out = append(out, log...)
	}
	slices.SortStableFunc(out, func(a, b audit.Event) int { return a.At.Compare(b.At) })
	return out, nil
}
