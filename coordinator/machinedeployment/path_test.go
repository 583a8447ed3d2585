package machinedeployment

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/refit-dev/refit/coordinator/board"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const spec = `{
	"versions": {"kubelet": "v1.37.2", "containerRuntime": {"name": "containerd", "version": "2.1.4"}},
	"os": {"packages": [{"name": "openssl", "version": "3"}, {"name": "telnet", "state": "Absent"}]},
	"node": {"labels": {"topology.kubernetes.io/zone": "a", "x": "y"}, "taints": [{"key": "k", "effect": "NoExecute", "value": "v"}]},
	"kubelet": {"configuration": {"evictionHard": {"memory.available": "1Gi"}, "maxPods": 200}},
	"kubeadm": {"ignorePreflightErrors": ["CreateJob", "Swap"]}
}`

// The fields are named as the API server names them in a conflict.
func TestTheFieldOfAConflictIsLeftOutAndNothingElse(t *testing.T) {
	for field, left := range map[string]string{
		`spec.versions.kubelet`:                                    `{"versions": {"containerRuntime": {"name": "containerd", "version": "2.1.4"}}}`,
		`spec.versions.containerRuntime.version`:                   `{"versions": {"kubelet": "v1.37.2", "containerRuntime": {"name": "containerd"}}}`,
		`spec.os.packages[name="openssl"].version`:                 `{"os": {"packages": [{"name": "telnet", "state": "Absent"}]}}`,
		`spec.os.packages[name="telnet"]`:                          `{"os": {"packages": [{"name": "openssl", "version": "3"}]}}`,
		`spec.node.labels.topology.kubernetes.io/zone`:             `{"node": {"labels": {"x": "y"}, "taints": [{"key": "k", "effect": "NoExecute", "value": "v"}]}}`,
		`spec.node.taints[key="k",effect="NoExecute"].value`:       `{"node": {"labels": {"topology.kubernetes.io/zone": "a", "x": "y"}}}`,
		`spec.kubelet.configuration.evictionHard.memory.available`: `{"kubelet": {"configuration": {"maxPods": 200}}}`,
		`spec.kubeadm.ignorePreflightErrors[="Swap"]`:              `{"kubeadm": {"ignorePreflightErrors": ["CreateJob"]}}`,
	} {
		t.Run(field, func(t *testing.T) {
			var fields, want map[string]any
			require.NoError(t, json.Unmarshal([]byte(spec), &fields))
			require.NoError(t, json.Unmarshal([]byte(left), &want))
			require.True(t, remove(fields, field))
			for top, value := range want {
				assert.Equal(t, value, fields[top])
			}
			assert.Len(t, fields, 5)
		})
	}
}

func TestAFieldThatIsNotThereIsNotRemoved(t *testing.T) {
	for _, field := range []string{"spec.roles", "spec.versions.etcd", `spec.os.packages[name="vim"]`, "metadata.labels.x", "spec.", `spec.os.packages[name=`, "spec.versions.kubelet.x"} {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(spec), &fields))
		assert.False(t, remove(fields, field), field)
	}
}

func TestOnlyAFieldManagerConflictIsAnOverride(t *testing.T) {
	conflict := apierrors.NewApplyConflict([]metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.versions.kubelet", Message: `conflict with "kubectl-edit" using refit.dev/v1alpha1`},
	}, "")
	assert.Equal(t, []board.Override{{Field: "spec.versions.kubelet", Manager: "kubectl-edit"}}, conflictsOf(conflict))
	assert.Empty(t, conflictsOf(apierrors.NewConflict(machines, "w1", nil)))
	assert.Empty(t, conflictsOf(apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", machines, "w1", "", 0, false)))
	assert.Empty(t, conflictsOf(nil))
}

var machines = schema.GroupResource{Group: "refit.dev", Resource: "machines"}
