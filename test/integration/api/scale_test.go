package api

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubectl runs the kubectl of the server's release against it.
func kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	kubeconfig := server.WriteKubeconfig(t, t.TempDir(), "kubernetes-admin", "system:masters")
	out, err := exec.Command(server.Kubectl(t), append([]string{"--kubeconfig", kubeconfig, "-n", namespace}, args...)...).CombinedOutput()
	return string(out), err
}

func TestAPoolIsScaledWithKubectl(t *testing.T) {
	for name, spec := range map[string]string{
		"with replicas":               "replicas: 3, ",
		"without replicas, which all": "",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, server.Apply(t.Context(), []byte("{apiVersion: refit.dev/v1alpha1, kind: MachineDeployment, metadata: {name: scaled, namespace: "+namespace+
				"}, spec: {"+spec+"selector: {matchLabels: {pool: scaled}}, template: {spec: {}}}}")))
			t.Cleanup(func() { _, _ = kubectl(t, "delete", "machd", "scaled") })
			replicas := func() string {
				out, err := kubectl(t, "get", "machd", "scaled", "-o", "jsonpath={.spec.replicas}")
				require.NoError(t, err, out)
				return out
			}
			out, err := kubectl(t, "scale", "machd/scaled", "--replicas=5", "--current-replicas=4")
			require.Error(t, err, "nobody scales what is not as they think: %s", out)
			out, err = kubectl(t, "scale", "machd/scaled", "--replicas=2")
			require.NoError(t, err, out)
			assert.Equal(t, "2", replicas())
			out, err = kubectl(t, "scale", "machd/scaled", "--replicas=3", "--current-replicas=2")
			require.NoError(t, err, out)
			assert.Equal(t, "3", replicas())
			out, err = kubectl(t, "scale", "machd/scaled", "--replicas=-1")
			require.Error(t, err, out)
			assert.Equal(t, "3", replicas())
		})
	}
}
