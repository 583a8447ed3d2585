package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
)

// editStatusSchema changes what the CRD says of the status of Machines.
func (c *cluster) editStatusSchema(ctx context.Context, edit func(properties map[string]any)) {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.srv.Admin())
	require.NoError(c.t, err)
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	require.EventuallyWithT(c.t, func(t *assert.CollectT) { // its controllers write it, too
		crd, err := crds.Get(ctx, "machines.refit.dev", metav1.GetOptions{})
		require.NoError(t, err)
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		properties, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties")
		require.NoError(t, err)
		require.True(t, found)
		edit(properties)
		require.NoError(t, unstructured.SetNestedMap(versions[0].(map[string]any), properties, "schema", "openAPIV3Schema", "properties", "status", "properties"))
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		_, err = crds.Update(ctx, crd, metav1.UpdateOptions{})
		require.NoError(t, err)
	}, patience, 50*time.Millisecond)
}

// Hosts may be upgraded before the CRDs: what these do not know is left out, and the rest is reported.
func TestAnAgentReportsToTheCRDsOfAnEarlierVersion(t *testing.T) {
	c := newCluster(t)
	var end, packages any
	c.editStatusSchema(t.Context(), func(p map[string]any) {
		if p["certificateEndTime"] == nil {
			return
		}
		end, packages = p["certificateEndTime"], p["os"]
		os := (&unstructured.Unstructured{Object: p["os"].(map[string]any)}).DeepCopy().Object
		unstructured.RemoveNestedField(os, "properties", "packages", "items", "properties", "expendable")
		delete(p, "certificateEndTime")
		p["os"] = os
	})
	t.Cleanup(func() {
		c.editStatusSchema(context.WithoutCancel(t.Context()), func(p map[string]any) { p["certificateEndTime"], p["os"] = end, packages })
	})

	client, err := watch.NewClient(c.srv.As(t, "system:node:"+c.name, "system:nodes"), namespace, c.name)
	require.NoError(t, err)
	raw := func() bool { // until the API server goes by the other schema
		_, err := c.api.Apply(t.Context(), c.name, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "refit.dev/v1alpha1", "kind": "Machine", "metadata": map[string]any{"name": c.name, "namespace": namespace},
			"status": map[string]any{"certificateEndTime": "2030-01-01T00:00:00Z"},
		}}, metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}}, "status")
		t.Log(err)
		return err != nil
	}
	require.Eventually(t, raw, patience, 100*time.Millisecond)

	status := v1alpha1.MachineStatus{
		CertificateEndTime: &metav1.Time{Time: time.Now()}, Versions: &v1alpha1.ObservedVersions{Kubelet: oldVersion},
		OS: &v1alpha1.ObservedOS{ID: "debian", Packages: []v1alpha1.ObservedPackage{{Name: "dropbear", Expendable: true}, {Name: "htop", Version: "3"}}},
	}
	got, err := client.ApplyStatus(t.Context(), status, "")
	require.NoError(t, err)
	assert.Equal(t, oldVersion, got.Status.Versions.Kubelet)
	assert.Equal(t, []v1alpha1.ObservedPackage{{Name: "dropbear"}, {Name: "htop", Version: "3"}}, got.Status.OS.Packages)
	assert.Nil(t, got.Status.CertificateEndTime)
}
