package status_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/status"
)

func TestAStructThatSaysNothingIsNeverAnEmptyObject(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.MachineStatus
		want   string
	}{
		"nothing at all":       {v1alpha1.MachineStatus{}, `{}`},
		"an empty struct":      {v1alpha1.MachineStatus{Kubelet: &v1alpha1.ObservedKubelet{}}, `{"kubelet":{"dropIn":""}}`},
		"a struct that speaks": {v1alpha1.MachineStatus{Kubelet: &v1alpha1.ObservedKubelet{RestartPending: true}}, `{"kubelet":{"restartPending":true}}`},
		"an empty struct in an empty one": {
			v1alpha1.MachineStatus{Versions: &v1alpha1.ObservedVersions{ControlPlane: &v1alpha1.ObservedControlPlane{}}},
			`{"versions":{"controlPlane":{"apiServer":""}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fields, err := status.Fields(c.status)
			require.NoError(t, err)
			data, err := json.Marshal(fields)
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(data))
			var back v1alpha1.MachineStatus
			require.NoError(t, json.Unmarshal(data, &back))
			assert.Equal(t, c.status, back, "it reads the same")
		})
	}
}
