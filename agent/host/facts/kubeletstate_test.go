package facts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
