package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/upgrade"
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

func TestTheSampleFileOfTheDocumentationIsOne(t *testing.T) {
	text, err := os.ReadFile("../../docs/refit-agent.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	require.True(t, found)
	sample, _, _ := strings.Cut(rest, "```")
	document, err := ReadMachine("-", strings.NewReader(sample))
	require.NoError(t, err)
	assert.EqualValues(t, "v1.37.2", document.machine.Spec.Versions.Kubelet)
	_, err = document.assignment(Statement{})
	require.NoError(t, err)
}

func TestOnlyRootIsAnsweredWhatOnlyRootCanSee(t *testing.T) {
	require.NoError(t, asRoot(0, "can"))
	require.EqualError(t, asRoot(1000, "can read the record"), "only root can read the record: run the command as root, such as with sudo")
}

func TestAHostsFactsSayWhatItRanBefore(t *testing.T) {
	h := &Host{records: store.New(t.TempDir())}
	j, err := journal.NewStore(h.records.Dir()).Create(upgrade.Operation{ID: "g1", Plan: upgrade.Plan{}}, "b", time.Now)
	require.NoError(t, err)
	require.NoError(t, j.SetBaseline(journal.Baseline{Kubelet: "v1.36.3"}))
	_, err = h.records.Claim("m1")
	require.NoError(t, err)
	own, other := upgrade.Facts{Host: upgrade.HostFacts{MachineID: "m1"}}, upgrade.Facts{Host: upgrade.HostFacts{MachineID: "m2"}}
	h.remember(&own)
	assert.Equal(t, []v1alpha1.Versions{{Kubelet: "v1.36.3"}}, own.Record)
	assert.Empty(t, own.Problems)
	h.remember(&other)
	assert.Empty(t, other.Record)
	require.Len(t, other.Problems, 1)
	assert.Equal(t, upgrade.FieldRecord, other.Problems[0].Field)
}
