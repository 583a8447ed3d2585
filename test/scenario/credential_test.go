package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// credentialOf is what the agent of a host speaks with: the kubelet's certificate, or in a pod a token in its memory.
func (s *story) credentialOf(t *testing.T, host string) *rest.Config {
	t.Helper()
	cfg := rest.AnonymousClientConfig(s.env.Config)
	if AsDaemonSet() {
		token, err := s.env.Fleet.Host(host).Exec(s.ctx, nil, "sh", "-c", `cat /proc/$(pgrep -f '^/refit-agent run --daemonset')/root/token/token`)
		require.NoError(t, err)
		cfg.BearerToken = string(token)
		return cfg
	}
	pem, err := s.env.Fleet.Host(host).Exec(s.ctx, nil, "cat", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	require.NoError(t, err)
	cfg.CertData, cfg.KeyData = pem, pem
	return cfg
}

// credentialIsNarrow uses the very key that the agent of worker-1 uses.
func (s *story) credentialIsNarrow(t *testing.T) {
	cfg := s.credentialOf(t, "worker-1")
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	c, err := client.New(cfg, client.Options{Scheme: s.env.Client.Scheme()})
	require.NoError(t, err)

	own := &v1alpha1.Machine{}
	require.NoError(t, c.Get(s.ctx, types.NamespacedName{Namespace: MachineNamespace, Name: "worker-1"}, own), "its own Machine it may read")

	refused := map[string]func() error{
		"list nodes":    func() error { _, err := kube.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{}); return err },
		"list pods":     func() error { _, err := kube.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{}); return err },
		"list secrets":  func() error { _, err := kube.CoreV1().Secrets("").List(s.ctx, metav1.ListOptions{}); return err },
		"list Machines": func() error { return c.List(s.ctx, &v1alpha1.MachineList{}, client.InNamespace(MachineNamespace)) },
		"read another Machine": func() error {
			return c.Get(s.ctx, types.NamespacedName{Namespace: MachineNamespace, Name: "worker-2"}, &v1alpha1.Machine{})
		},
		"read the ledger": func() error {
			return c.Get(s.ctx, types.NamespacedName{Namespace: MachineNamespace, Name: v1alpha1.LedgerName}, &v1alpha1.Ledger{})
		},
		"write another Machine's status": func() error {
			other := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: MachineNamespace, Name: "worker-2"}}
			return c.Status().Patch(s.ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":99}}`)))
		},
		"write its own spec": func() error {
			return c.Patch(s.ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`)))
		},
		"grant itself": func() error {
			raw := `{"status":{"grant":{"id":"mine","assignmentID":"a","planHash":"h","epoch":1}}}`
			return c.Status().Patch(s.ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(raw)))
		},
	}
	for name, try := range refused {
		t.Run("cannot "+name, func(t *testing.T) {
			err := try()
			require.Error(t, err)
			assert.True(t, apierrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy"), "%v", err)
		})
	}
}
