package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/manifest"
)

func TestAMachineFileIsReadAsStrictlyAsTheAPIServerWould(t *testing.T) {
	const good = "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [Worker]\n  versions: {kubelet: v1.37.2}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"a good one":          {good, ""},
		"a version without v": {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [Worker]\n  versions:\n    kubelet: 1.37.2\n", "machine.yaml:7: spec.versions.kubelet: Invalid value: must be a Kubernetes version"},
		"a field that is not": {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w1}\nspec:\n  roles: [Worker]\n  version: {}\n", "machine.yaml:6: spec.version: unknown field"},
		"two Machines":        {good + "---\n" + "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: w2}\nspec: {roles: [Worker]}\n", "machine.yaml:9: kind: this is the second of 2 Machines: a host has one"},
		"nothing":             {"# to be written\n", "machine.yaml: there is no object in it"},
		"something else":      {"apiVersion: refit.dev/v1alpha1\nkind: MachineDeployment\nmetadata: {name: w}\n", "machine.yaml:2: kind: MachineDeployment is not read here: give Machine"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "machine.yaml")
			require.NoError(t, os.WriteFile(file, []byte(tc.text), 0o600))
			document, err := ReadMachine(file, nil)
			if tc.want == "" {
				require.NoError(t, err)
				assert.EqualValues(t, "v1.37.2", document.machine.Spec.Versions.Kubelet)
				return
			}
			require.ErrorContains(t, err, tc.want)
			assert.True(t, manifest.Invalid(err))
		})
	}
}
