package apiserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/refit-dev/refit/test/integration/apiserver"
)

var (
	machines = schema.GroupVersionResource{Group: "refit.dev", Version: "v1alpha1", Resource: "machines"}
	nodes    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

const fixture = `
apiVersion: v1
kind: Namespace
metadata: {name: refit}
---
apiVersion: refit.dev/v1alpha1
kind: Machine
metadata: {name: w1, namespace: refit}
spec: {roles: [Worker]}
`

func client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return c
}

func TestServerServesTheCRDsAndJudgesEachIdentityForItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	srv := apiserver.Start(t)
	require.NoError(t, srv.Apply(ctx, []byte(fixture)))

	got, err := client(t, srv.Admin()).Resource(machines).Namespace("refit").Get(ctx, "w1", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "w1", got.GetName())

	kubelet := client(t, srv.As(t, "system:node:w1", "system:nodes"))
	_, err = kubelet.Resource(machines).Namespace("refit").Get(ctx, "w1", metav1.GetOptions{})
	assert.True(t, apierrors.IsForbidden(err), "a kubelet without a Role must not read Machines: %v", err)
	node := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "w2"},
	}}
	_, err = kubelet.Resource(nodes).Create(ctx, node, metav1.CreateOptions{})
	assert.True(t, apierrors.IsForbidden(err), "NodeRestriction must refuse another node's object: %v", err)
}

func TestServerKeepsAddressAndDataAcrossAnOutage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	srv := apiserver.Start(t)
	require.NoError(t, srv.Apply(ctx, []byte(fixture)))
	admin := client(t, srv.Admin()).Resource(machines).Namespace("refit")

	require.NoError(t, srv.KillAPI())
	_, err := admin.Get(ctx, "w1", metav1.GetOptions{})
	require.Error(t, err, "the API server must be away")

	require.NoError(t, srv.StartAPI(ctx))
	_, err = admin.Get(ctx, "w1", metav1.GetOptions{})
	require.NoError(t, err)
}
