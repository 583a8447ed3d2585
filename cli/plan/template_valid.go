package plan

import (
	"fmt"
	"strings"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// unwritable says why the API server would not take a Machine with the template in it:
// template and Machine may each be right where both together are not.
func unwritable(m *machine, d *v1alpha1.MachineDeployment) (*upgrade.Blocked, error) {
	spec, err := fields(m.Spec)
	if err != nil {
		return nil, err
	}
	object := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Machine",
		"metadata": map[string]any{"name": m.Name, "namespace": m.Namespace}, "spec": spec,
	}
	faults, err := crd.Check("Machine", object, nil)
	if err != nil {
		return nil, fmt.Errorf("checking Machine %s with the template of MachineDeployment %s: %w", m.Name, d.Name, err)
	}
	if len(faults) == 0 {
		return nil, nil
	}
	wrong := make([]string, 0, len(faults))
	for _, fault := range faults {
		wrong = append(wrong, fault.Field+": "+fault.Message)
	}
	return &upgrade.Blocked{Reason: ReasonInvalid, Terminal: true,
		Message: fmt.Sprintf("the template of MachineDeployment %s cannot be written into this Machine: %s; correct spec.template, or the selector that matches it", d.Name, strings.Join(wrong, "; "))}, nil
}
