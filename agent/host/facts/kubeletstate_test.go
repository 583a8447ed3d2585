package facts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/systemd"
)

// Each probe reports what it has found, and what it could not find out.
func TestWhatIsFoundIsPartOfTheFacts(t *testing.T) {
	p := New(tree(t, map[string]string{
		"etc/os-release":                               "ID=debian\n",
		"sys/fs/cgroup/cgroup.controllers":             "cpu",
		"var/lib/kubelet/cpu_manager_state":            `{"policyName":"static"}`,
		"etc/kubernetes/manifests/kube-scheduler.yaml": "kind: Pod\nmetadata: {name: s}\nspec:\n  containers:\n  - name: kube-scheduler\n    command: [kube-scheduler, --feature-gates=NodeSwap=true]\n",
	}), units{known: map[string]systemd.Status{"kubelet.service": {Unit: "kubelet.service", LoadState: "loaded", ActiveState: "inactive"}}})
	g := gather(p)
	require.NoError(t, g.os(t.Context()))
	require.NoError(t, g.kubelet(t.Context()))
	require.NoError(t, g.controlPlane(t.Context()))
	assert.Equal(t, 2, g.facts.OS.CgroupVersion)
	require.NotNil(t, g.facts.Kubelet)
	require.Len(t, g.facts.Kubelet.State, 1)
	assert.Equal(t, map[string][]string{"kube-scheduler": {"NodeSwap=true"}}, g.facts.Control.FeatureGates)

	blind := gather(New(tree(t, map[string]string{"etc/os-release": "ID=debian\n", "var/lib/kubelet/cpu_manager_state/x": ""}), p.Units))
	require.NoError(t, blind.os(t.Context()))
	require.NoError(t, blind.kubelet(t.Context()))
	assert.Subset(t, fields(blind.facts.Problems), []string{"os.cgroupVersion", "kubelet.state"})
}

func TestTheKubeletsStateSaysItsPolicyOrThatItIsDamaged(t *testing.T) {
	g := gather(New(tree(t, map[string]string{
		"var/lib/kubelet/cpu_manager_state":        `{"policyName":"static","defaultCpuSet":"0-3","checksum":1}`,
		"var/lib/kubelet/memory_manager_state":     `{"policyName":"No`,
		"var/lib/kubelet/pod_status_manager_state": `{"podStatus":{}}"`,
	}), units{}))
	states, err := g.kubeletState()
	require.NoError(t, err)
	require.Len(t, states, 3)
	assert.Equal(t, "static", states[0].Policy)
	assert.Empty(t, states[0].Broken)
	assert.NotEmpty(t, states[1].Broken)
	assert.Contains(t, states[2].Broken, "after top-level value")

	none, err := gather(New(t.TempDir(), units{})).kubeletState()
	require.NoError(t, err)
	assert.Empty(t, none)
	g = gather(New(tree(t, map[string]string{"var/lib/kubelet/cpu_manager_state/x": ""}), units{}))
	_, err = g.kubeletState()
	require.Error(t, err, "a directory in its place")
}
