package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// What the kubelet reads of its directory: https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/config/file.go
func TestEveryFileThatTheKubeletReadsIsAStaticPod(t *testing.T) {
	c := New(t.TempDir())
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver, namespace: kube-system}\nspec: {}\n"
	write(t, c, manifestDir+"/kube-apiserver.yaml", pod)
	write(t, c, manifestDir+"/kube-apiserver.yaml.orig", pod)
	write(t, c, manifestDir+"/.kube-apiserver.yaml.swp", pod)
	write(t, c, manifestDir+"/old/kube-apiserver.yaml", pod)
	write(t, c, manifestDir+"/README", "these are static pods")
	write(t, c, manifestDir+"/config.yaml", "kind: ConfigMap\nmetadata: {name: x}\n")
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(c.path(manifestDir), "dangling.yaml")))
	pods, err := c.StaticPods("")
	require.NoError(t, err)
	assert.Equal(t, []upgrade.StaticPodFacts{
		{Path: manifestDir + "/kube-apiserver.yaml", Namespace: "kube-system", Name: "kube-apiserver"},
		{Path: manifestDir + "/kube-apiserver.yaml.orig", Namespace: "kube-system", Name: "kube-apiserver"},
	}, pods)
	none, err := New(t.TempDir()).StaticPods("")
	require.NoError(t, err)
	assert.Empty(t, none, "a host without any is no fault")
}

func TestTheFeatureGatesOfTheManifestsAreFound(t *testing.T) {
	c := New(t.TempDir())
	write(t, c, manifestDir+"/kube-apiserver.yaml", "spec:\n  containers:\n  - name: kube-apiserver\n    command: [kube-apiserver, \"--feature-gates=NodeSwap=true, AppArmor=false\"]\n")
	write(t, c, manifestDir+"/kube-scheduler.yaml", "spec:\n  containers:\n  - name: kube-scheduler\n    command: [kube-scheduler]\n")
	gates, err := c.FeatureGates()
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"kube-apiserver": {"NodeSwap=true", "AppArmor=false"}}, gates)
	write(t, c, manifestDir+"/etcd.yaml", "spec: [")
	_, err = c.FeatureGates()
	require.ErrorContains(t, err, "etcd.yaml")
}
