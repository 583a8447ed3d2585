package setup

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// decodeMachine reads a Machine as a person wrote it; file is for the error. A field that
// is not known may be a wish that would not be carried out, so it is refused.
func decodeMachine(file string, text []byte) (*v1alpha1.Machine, error) {
	machine := &v1alpha1.Machine{}
	if err := yaml.UnmarshalStrict(text, machine); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if machine.Kind != "Machine" || machine.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("reading %s: it is a %s of %s: give one Machine of %s",
			file, machine.Kind, machine.APIVersion, v1alpha1.GroupVersion)
	}
	return machine, nil
}
