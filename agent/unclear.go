package agent

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// unclear says that something of the host could not be found out: a probe has failed, or what should run did not answer.
// The API server of a host is away for a moment whenever its kubelet restarts, and so may be anything else.
func unclear(f *upgrade.Facts) bool {
	if len(f.Problems) > 0 {
		return true
	}
	v, seen := f.Versions(), []string(nil)
	if f.Kubelet != nil && f.Kubelet.Active { // one that does not run tells of itself when it starts
		seen = append(seen, v.Kubelet)
	}
	if c := v.ControlPlane; c != nil {
		seen = append(seen, c.APIServer, c.ControllerManager, c.Scheduler)
	}
	if r := v.ContainerRuntime; r != nil && r.Installed == "" { // not one that is known to be stopped
		seen = append(seen, r.Version)
	}
	if c := f.Control; c != nil && c.Etcd == "" {
		if _, here := c.Manifests["etcd"]; here {
			return true
		}
	}
	return slices.Contains(seen, v1alpha1.Unknown)
}
