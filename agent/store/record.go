package store

import (
	"fmt"

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

// RecordOf is Record for the machine with that id. State that another one wrote, as on a
// disk that was cloned or that has outlived a new installation, proves nothing of this one.
func (s *Store) RecordOf(machineID string) ([]v1alpha1.Versions, error) {
	owner, err := s.Owner()
	switch {
	case err != nil:
		return nil, err
	case owner != "" && owner != machineID:
		return nil, fmt.Errorf("the state in %s is of the machine with id %s, and this host has %s: it was installed anew, or its disk was copied", s.dir, owner, machineID)
	}
	return s.Record(), nil
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
