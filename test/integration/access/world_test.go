package access

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	namespace = "refit"
	patience  = 30 * time.Second
)

// hosts are w1, of whose own Machine and of another's the matrix asks, w2, the other, gone, whose Node is deleted,
// and e1, which has etcd and no Node. No agent of a host with a Node has a Lease: those of w1 and w2 are there to be kept from it.
const fixture = `
{apiVersion: v1, kind: Node, metadata: {name: w1}}
---
{apiVersion: v1, kind: Node, metadata: {name: w2}}
---
{apiVersion: v1, kind: Node, metadata: {name: gone}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: default}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: refit}}
---
{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w1, namespace: refit}, spec: {roles: [Worker]}}
---
{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: w2, namespace: refit}, spec: {roles: [Worker]}}
---
{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: gone, namespace: refit}, spec: {roles: [Worker]}}
---
{apiVersion: refit.dev/v1alpha1, kind: Machine, metadata: {name: e1, namespace: refit}, spec: {roles: [Etcd]}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: refit-machine-w1, namespace: refit}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: refit-machine-w2, namespace: refit}}
---
{apiVersion: refit.dev/v1alpha1, kind: MachineDeployment, metadata: {name: pool, namespace: refit}, spec: {selector: {matchLabels: {pool: none}}, template: {}}}
---
{apiVersion: refit.dev/v1alpha1, kind: MachineDisruptionBudget, metadata: {name: budget, namespace: refit}, spec: {selector: {}, maxUnavailable: 1}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret, namespace: refit}}
`

// pod is the agent's pod on a Node, as the DaemonSet's controller would bind it.
const pod = `
apiVersion: v1
kind: Pod
metadata: {name: agent-NODE, namespace: refit-agent}
spec:
  nodeName: NODE
  serviceAccountName: refit-agent
  automountServiceAccountToken: false
  containers: [{name: agent, image: refit-agent:dev}]
`

// apply applies manifests as administrator.
func apply(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, server.Apply(t.Context(), []byte(text)))
}

// letCoordinatorWork runs the real coordinator, with the credential that it ships with, until it has written the Roles.
func letCoordinatorWork(t *testing.T, kube kubernetes.Interface) {
	t.Helper()
	var logs bytes.Buffer
	cmd := exec.Command(program, "--kubeconfig="+server.WriteKubeconfig(t, t.TempDir(), coordinatorUser, "system:serviceaccounts"),
		"--agent-identity=Both", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	cmd.Stdout, cmd.Stderr = &logs, &logs
	require.NoError(t, cmd.Start())
	written := func() bool {
		for _, name := range []string{"w1", "w2", "gone"} {
			b, err := kube.RbacV1().RoleBindings(namespace).Get(context.Background(), "refit-machine-"+name, metav1.GetOptions{})
			if err != nil || len(b.Subjects) != 2 {
				return false
			}
		}
		_, err := kube.RbacV1().RoleBindings(namespace).Get(context.Background(), "refit-machine-e1", metav1.GetOptions{})
		if err != nil {
			return false
		}
		_, err = kube.CoordinationV1().Leases(namespace).Get(context.Background(), "refit-machine-e1", metav1.GetOptions{})
		return err == nil
	}
	worked := eventually(written)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	require.True(t, worked, "the coordinator wrote no Roles:\n%s", logs.String())
}

func eventually(ok func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

// bearer is a client configuration with a token of a ServiceAccount, bound to what ref says; nil for nothing.
func bearer(t *testing.T, kube kubernetes.Interface, ns, name string, ref *authenticationv1.BoundObjectReference) *rest.Config {
	t.Helper()
	answer, err := kube.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: ref}}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(server.Admin())
	config.QPS = -1
	config.BearerToken = answer.Status.Token
	return config
}

func boundTo(kind, name string) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: name}
}
