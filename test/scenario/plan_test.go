package scenario

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// planIsShown asks for the plan of the coming edit in each way there is: over the live
// cluster, from files alone, and on a host. What it says is kept and compared with what
// is carried out later.
func (s *story) planIsShown(t *testing.T) {
	dir := t.TempDir()
	pools := s.editedPools(t, dir)
	facts := s.factsOfEveryHost(t, dir)

	live := s.plan(t, append([]string{"--live", "-f", pools}, facts...)...)
	require.Len(t, live, len(s.env.Fleet.Hosts()))
	s.shown = map[string]preview.MachinePlan{}
	for _, m := range live {
		assert.Nil(t, m.Refusal, m.Machine)
		assert.Equal(t, v1alpha1.DisruptionDrain, m.Disruption, m.Machine)
		assert.EqualValues(t, To.Kubernetes, m.To.Kubelet, m.Machine)
		assert.Equal(t, 1, m.Drains, "%s: one minor is one drained window", m.Machine)
		require.NotEmpty(t, m.Hash, m.Machine)
		s.shown[m.Machine] = m
	}
	assert.Equal(t, "cp-1", live[0].Machine, "the control plane begins")

	objects := filepath.Join(dir, "machines.yaml")
	text, err := s.env.Kubectl(s.ctx, "get", "machines", "-n", MachineNamespace, "-o", "yaml", "--show-managed-fields")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(objects, []byte(text), 0o600))
	for _, m := range s.plan(t, append([]string{"-f", objects, "-f", pools}, facts...)...) {
		assert.Equal(t, s.shown[m.Machine].Hash, m.Hash, "%s: files alone give the same plan", m.Machine)
	}

	document, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Machine", "metadata": map[string]any{"name": "worker-1"},
		"spec": s.wishOf(t, "worker-1"),
	})
	require.NoError(t, err)
	out, err := s.env.Fleet.Host("worker-1").Exec(s.ctx, bytes.NewReader(document), "refit-agent", "plan", "-f", "-", "-o", "json")
	require.NoError(t, err)
	var own preview.PlanList
	require.NoError(t, json.Unmarshal(out, &own))
	require.Len(t, own.Items, 1)
	assert.Equal(t, s.shown["worker-1"].Hash, own.Items[0].Hash, "the host itself gives the same plan")
}

// wishOf is what the spec of a machine will be: its own, with the edit in it.
func (s *story) wishOf(t *testing.T, name string) map[string]any {
	t.Helper()
	m := &v1alpha1.Machine{}
	require.NoError(t, s.env.Client.Get(s.ctx, client.ObjectKey{Namespace: MachineNamespace, Name: name}, m))
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.Spec)
	require.NoError(t, err)
	maps.Copy(spec, edit(&v1alpha1.MachineDeployment{}, To))
	return spec
}

// editedPools writes the pools as the edit will leave them.
func (s *story) editedPools(t *testing.T, dir string) string {
	t.Helper()
	var pools v1alpha1.MachineDeploymentList
	require.NoError(t, s.env.Client.List(s.ctx, &pools, client.InNamespace(MachineNamespace)))
	var out []byte
	for i := range pools.Items {
		p := &pools.Items[i]
		change, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": edit(p, To)}}})
		require.NoError(t, err)
		require.NoError(t, s.env.Client.Patch(s.ctx, p, client.RawPatch(types.MergePatchType, change), client.DryRunAll))
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "MachineDeployment",
			"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace}, "spec": p.Spec,
		})
		require.NoError(t, err)
		out = append(append(out, "---\n"...), text...)
	}
	file := filepath.Join(dir, "pools.yaml")
	require.NoError(t, os.WriteFile(file, out, 0o600))
	return file
}

// factsOfEveryHost writes what each host says of itself, as flags of kubectl refit plan.
func (s *story) factsOfEveryHost(t *testing.T, dir string) []string {
	t.Helper()
	target, ok := upgrade.ParseKubernetes(To.Kubernetes)
	require.True(t, ok)
	var flags []string
	for _, h := range s.env.Fleet.Hosts() {
		out, err := h.Exec(s.ctx, nil, "refit-agent", "facts", "-o", "yaml", "--minor", target.Minor())
		require.NoError(t, err, h.Name())
		var facts upgrade.Facts
		require.NoError(t, yaml.Unmarshal(out, &facts))
		assert.Empty(t, facts.Problems, "every probe of %s answered", h.Name())
		assert.Equal(t, s.before[h.Name()].Kubelet, facts.Kubelet.Running, h.Name())
		assert.Equal(t, s.before[h.Name()].Runtime, strings.TrimPrefix(facts.Runtime.Running, "v"), h.Name())
		file := filepath.Join(dir, h.Name()+".yaml")
		require.NoError(t, os.WriteFile(file, out, 0o600))
		flags = append(flags, "--facts", file)
	}
	return flags
}

func (s *story) plan(t *testing.T, args ...string) []preview.MachinePlan {
	t.Helper()
	out, err := s.env.Refit(s.ctx, append([]string{"plan", "-n", MachineNamespace, "-o", "json"}, args...)...)
	require.NoError(t, err)
	var list preview.PlanList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	return list.Items
}

// planIsCarriedOut: what was shown before the edit is what each host did.
func (s *story) planIsCarriedOut(t *testing.T) {
	for _, h := range s.env.Fleet.Hosts() {
		assert.Equal(t, s.shown[h.Name()].Hash, s.planned[h.Name()], h.Name())
	}
}
