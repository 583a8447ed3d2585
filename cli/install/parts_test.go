package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-dev/refit/deploy"
)

func titles(objects []*unstructured.Unstructured) []string {
	out := make([]string, 0, len(objects))
	for _, o := range objects {
		out = append(out, title(o))
	}
	return out
}

func TestTheShippedManifestsGoIntoTwoClustersWithoutALoss(t *testing.T) {
	load := func(part string) []*unstructured.Unstructured {
		objects, err := Load(deploy.Manifests)
		require.NoError(t, err)
		objects, err = Part(objects, part)
		require.NoError(t, err)
		return objects
	}
	all, management, workload := titles(load("")), titles(load(PartManagement)), titles(load(PartWorkload))
	assert.ElementsMatch(t, all, unique(append(append([]string{}, management...), workload...)))
	for _, o := range load(PartWorkload) {
		assert.Contains(t, []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, o.GetKind())
		assert.NotEqual(t, "refit", o.GetNamespace(), "no Machine is in the workload cluster: %s", title(o))
		assert.NotEqual(t, "refit", o.GetName(), title(o))
	}
	for _, o := range load(PartManagement) {
		assert.NotContains(t, o.GetKind(), "ClusterRole", "nothing of the management cluster's own nodes: %s", title(o))
	}
}

func unique(in []string) []string {
	seen, out := map[string]bool{}, []string(nil)
	for _, s := range in {
		if !seen[s] {
			seen[s], out = true, append(out, s)
		}
	}
	return out
}

func TestTheCoordinatorOfTheManagementClusterIsToldWhereTheNodesAre(t *testing.T) {
	objects, err := Load(deploy.Manifests)
	require.NoError(t, err)
	objects, err = Part(objects, PartManagement)
	require.NoError(t, err)
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		require.Len(t, containers, 1)
		c, ok := containers[0].(map[string]any)
		require.True(t, ok)
		assert.Contains(t, c["args"], "--workload-kubeconfig=/etc/refit/workload/kubeconfig")
		assert.Contains(t, c["volumeMounts"], map[string]any{"name": "workload", "mountPath": "/etc/refit/workload", "readOnly": true})
		volumes, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		require.NoError(t, err)
		assert.Contains(t, volumes, map[string]any{"name": "workload", "secret": map[string]any{"secretName": WorkloadSecret}})
		return
	}
	require.Fail(t, "there is no Deployment")
}
