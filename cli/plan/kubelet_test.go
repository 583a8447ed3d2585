package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/preview"
)

func TestAHostWhoseKubeletDoesNotRunIsRepaired(t *testing.T) {
	facts := strings.ReplaceAll(testdata(t, "facts.yaml"), "kubelet: {running: v1.36.3, installed: v1.36.3, unit: kubelet.service, active: true}\nkubeadm: {installed: v1.36.3}\ncontainerRuntime: {name: containerd, running: v1.7.35, installed: 1.7.35, unit: containerd.service, ready: true}\nnode: {name: worker-1}",
		"kubelet: {installed: v1.36.3, unit: kubelet.service}\nkubeadm: {installed: v1.36.3}\ncontainerRuntime: {name: containerd, running: v1.7.35, installed: 1.7.35, unit: containerd.service, ready: true}\nnode: {name: worker-1}")
	list, err := planned(t, testdata(t, "objects.yaml"), facts, "worker-1", "cp-1")
	require.NoError(t, err)
	require.Contains(t, facts, "kubelet: {installed: v1.36.3, unit: kubelet.service}")
	for _, item := range list.Items {
		assert.Equal(t, preview.StatePending, item.State, "%s: %+v", item.Machine, item.Refusal)
		assert.NotEmpty(t, item.Hash)
	}

	objects := controlPlane("cp", "v1.36.3", "v1.37.2") + worker("w", "Unknown", "v1.37.2")
	list, err = planned(t, objects, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"cp", "w"}, list.Refused(), "where nothing at all is known")
	list, err = planned(t, objects+"\n{apiVersion: v1, kind: Node, metadata: {name: w}, status: {nodeInfo: {kubeletVersion: v1.36.3}}}\n", "")
	require.NoError(t, err)
	assert.Empty(t, list.Refused(), "the Node says what it was last")
	assert.Equal(t, []int{1, 1}, []int{len(list.Items[0].Hops), len(list.Items[1].Hops)})
}

func TestAHostWhoseRuntimeIsDownIsRepairedFirst(t *testing.T) {
	down := strings.Replace(worker("w", "v1.36.3", "v1.37.2"), `containerRuntime: {name: containerd, version: 2.1.4, text: "containerd://2.1.4"}`, "containerRuntime: {name: containerd, version: Unknown, installed: 2.1.4}", 1)
	down = strings.Replace(down, "{kubelet: v1.37.2}", "{kubelet: v1.37.2, containerRuntime: {name: containerd, version: 2.1.5}}", 1)
	require.Contains(t, down, "2.1.5")
	list, err := planned(t, controlPlane("cp", "v1.37.2", "v1.37.2")+down, "", "w")
	require.NoError(t, err)
	item := list.Items[0]
	require.Nil(t, item.Refusal)
	require.Len(t, item.Hops, 2)
	assert.Equal(t, "2.1.5", string(item.Hops[0].Target.ContainerRuntime.Version))
	assert.EqualValues(t, "Restart", item.Hops[0].Disruption)
	assert.EqualValues(t, "v1.37.2", item.Hops[1].Target.Kubelet)

	broken := `  conditions: [{type: PackagesBroken, status: "True", reason: PackageDBBroken, message: "packages are half installed on this host: containerd", lastTransitionTime: 2026-01-01T00:00:00Z}]` + "\n"
	list, err = planned(t, controlPlane("cp", "v1.37.2", "v1.37.2")+strings.Replace(strings.Replace(down, "Unknown, installed: 2.1.4", "Unknown", 1), "status:\n", "status:\n"+broken, 1), "", "w")
	require.NoError(t, err)
	require.NotNil(t, list.Items[0].Refusal)
	assert.Equal(t, "PackageDBBroken", list.Items[0].Refusal.Reason, "what stopped it is named first")
}
