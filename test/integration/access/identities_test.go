package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	coordinatorUser = "system:serviceaccount:refit-system:refit-coordinator"
	podUser         = "system:serviceaccount:refit-agent:refit-agent"
)

// identity is one column of the matrix: somebody, and the host whose Machine is its own.
type identity struct {
	name, what string
	own        string
	config     *rest.Config
	client     dynamic.Interface
}

// identities are the credentials as they are made in a cluster, none of them impersonated.
func identities(t *testing.T, kube kubernetes.Interface) []identity {
	t.Helper()
	for _, node := range []string{"w1", "gone"} {
		apply(t, strings.ReplaceAll(pod, "NODE", node))
	}
	all := []identity{
		{name: "kubelet", what: "the agent of w1 with the kubelet's certificate", own: "w1", config: server.As(t, "system:node:w1", "system:nodes")},
		{name: "token", what: "the agent of w1 with a token of refit-machine-w1", own: "w1", config: bearer(t, kube, namespace, "refit-machine-w1", nil)},
		{name: "bound", what: "the same with a token that is bound to the Node w1", own: "w1", config: bearer(t, kube, namespace, "refit-machine-w1", boundTo("Node", "w1"))},
		{name: "alone", what: "the agent of e1, which has etcd and no Node, with a token of refit-machine-e1", own: "e1", config: bearer(t, kube, namespace, "refit-machine-e1", nil)},
		{name: "kubelet-", what: "the agent with the kubelet's certificate, after its Node was deleted", own: "gone", config: server.As(t, "system:node:gone", "system:nodes")},
		{name: "bound-", what: "the agent with a token that is bound to its Node, after that was deleted", own: "gone", config: bearer(t, kube, namespace, "refit-machine-gone", boundTo("Node", "gone"))},
		{name: "pod", what: "the pod of the DaemonSet on w1", own: "w1", config: bearer(t, kube, "refit-agent", "refit-agent", boundTo("Pod", "agent-w1"))},
		{name: "pod?", what: "a token of the DaemonSet's ServiceAccount that names no node", own: "w1", config: bearer(t, kube, "refit-agent", "refit-agent", nil)},
		{name: "coord", what: "the coordinator", own: "w1", config: bearer(t, kube, "refit-system", "refit-coordinator", nil)},
		{name: "nobody", what: "the ServiceAccount default/default", own: "w1", config: bearer(t, kube, "default", "default", nil)},
		{name: "anon", what: "no credential", own: "w1", config: rest.AnonymousClientConfig(server.Admin())},
		{name: "admin", what: "the administrator, by whom it is seen that a request is well formed (dry runs alone)", own: "w1", config: server.Admin()},
	}
	for i := range all {
		all[i].config.QPS = -1
		c, err := dynamic.NewForConfig(all[i].config)
		require.NoError(t, err)
		all[i].client = c
	}
	require.NoError(t, kube.CoreV1().Nodes().Delete(t.Context(), "gone", metav1.DeleteOptions{}))
	return all
}

func byName(all []identity, name string) identity {
	for _, id := range all {
		if id.name == name {
			return id
		}
	}
	panic("no identity " + name)
}

// awaitInForce waits until the API server judges by all that was written: a deleted Node's token, the Roles, the policies.
func awaitInForce(t *testing.T, all []identity) {
	t.Helper()
	read := func(name string) error {
		id := byName(all, name)
		_, err := id.client.Resource(machines).Namespace(namespace).Get(t.Context(), id.own, metav1.GetOptions{})
		return err
	}
	require.True(t, eventually(func() bool {
		return apierrors.IsUnauthorized(read("bound-")) && read("kubelet") == nil && read("alone") == nil && read("bound") == nil && read("coord") == nil
	}), "the Roles, or the end of a bound token")
	last := map[string]error{}
	policy := func(name, resource, object string, subresources ...string) bool {
		o := parse(named(object, "w1", "w2", "u"))
		_, err := byName(all, name).client.Resource(resources[resource]).Namespace(namespace).
			Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		last[resource] = err
		return verdict(err) == byPolicy
	}
	require.True(t, eventually(func() bool {
		return policy("pod", "serviceaccounts", tokenOther, "token") && policy("coord", "roles", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}}") &&
			policy("admin", "pods", podAsHost)
	}), "the policies are not in force: %v", last)
}
