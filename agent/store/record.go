package store

import (
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Record lists the sets of versions that this host ran, by its own journals: only they
// may be gone back to. A journal that cannot be read proves nothing.
func (s *Store) Record() []v1alpha1.Versions {
	records, _ := journal.NewStore(s.dir).List() // what could not be read is left out
	var out []v1alpha1.Versions
	for _, r := range records {
		if b := r.Baseline; b != nil {
			out = append(out, asVersions(b.Kubelet, b.ControlPlane, b.RuntimeName, b.Runtime))
		}
		if r.State != journal.Successful {
			continue
		}
		for _, step := range r.Operation.Plan.Steps {
			if e := step.Expect; e != nil && step.Kind == upgrade.StepVerify {
				out = append(out, asVersions(e.Kubelet, e.ControlPlane, e.RuntimeName, e.Runtime))
			}
		}
	}
	return out
}

func asVersions(kubelet, controlPlane, runtimeName, runtime string) v1alpha1.Versions {
	v := v1alpha1.Versions{
		Kubelet: v1alpha1.KubernetesVersion(kubelet), ControlPlane: v1alpha1.KubernetesVersion(controlPlane),
	}
	if runtimeName != "" {
		v.ContainerRuntime = &v1alpha1.ContainerRuntime{
			Name: v1alpha1.RuntimeName(runtimeName), Version: v1alpha1.ReleaseVersion(runtime),
		}
	}
	return v
}
