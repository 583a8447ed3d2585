package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// withEtcd is a control plane that reports its etcd.
func withEtcd(name, seen, etcd, wish string) string {
	return strings.Replace(controlPlane(name, seen, wish), "containerRuntime:", "etcd: "+etcd+", containerRuntime:", 1)
}

func TestNoControlPlaneIsPlannedWhileTheEtcdOfAPeerIsTooOld(t *testing.T) {
	objects, plain, facts := "", "", ""
	for name, etcd := range map[string]string{"cp-1": "3.5.24", "cp-2": "3.5.21", "cp-3": "3.5.24"} {
		objects += withEtcd(name, "v1.33.9", etcd, "v1.34.9")
		plain += controlPlane(name, "v1.33.9", "v1.34.9")
		facts += controlPlaneFacts(name, "v1.33.9", etcd, "--v=2")
	}
	for name, given := range map[string][2]string{"by what the Machines report": {objects, ""}, "by the facts": {plain, facts}} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, given[0], given[1])
			require.NoError(t, err)
			require.Len(t, list.Items, 3)
			for _, item := range list.Items {
				assert.Equal(t, preview.StateRefused, item.State, item.Machine)
				assert.Empty(t, item.Hops, item.Machine)
				require.NotNil(t, item.Refusal)
				assert.Equal(t, upgrade.FindingEtcdTooOld, item.Refusal.Reason)
				assert.Contains(t, item.Refusal.Message, "cp-2 (3.5.21)")
			}
		})
	}
}

func TestNoControlPlaneIsPlannedWhileAPeerIsAskedForAnAPIThatGoes(t *testing.T) {
	objects := controlPlane("cp-1", "v1.36.3", "v1.37.2") + controlPlane("cp-2", "v1.36.3", "v1.37.2")
	of := func(name, removed string) string {
		return strings.Replace(controlPlaneFacts(name, "v1.36.3", "3.6.4", "--v=2"), "etcd: 3.6.4", "etcd: 3.6.4, deprecatedAPIs: ["+removed+"]", 1)
	}
	reported := strings.Replace(controlPlane("cp-2", "v1.36.3", "v1.37.2"), "status:\n", "status:\n  requestedAPIs: [{name: things.v1beta1.example.io, removedIn: v1.37}]\n", 1)
	const asked = `{group: example.io, version: v1beta1, resource: things, removedRelease: "1.37"}`
	for name, given := range map[string][2]string{
		"by the facts":                {objects, of("cp-1", "") + of("cp-2", asked)},
		"by the facts of the peer":    {objects, of("cp-2", asked)},
		"by what the Machines report": {controlPlane("cp-1", "v1.36.3", "v1.37.2") + reported, ""},
		"by what the peer reports":    {controlPlane("cp-1", "v1.36.3", "v1.37.2") + reported, of("cp-1", "")},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, given[0], given[1])
			require.NoError(t, err)
			require.Len(t, list.Items, 2)
			for _, item := range list.Items {
				assert.Empty(t, item.Hops, item.Machine)
				require.NotNil(t, item.Refusal)
				assert.Equal(t, upgrade.FindingRemovedAPI, item.Refusal.Reason)
				assert.Contains(t, item.Refusal.Message, "cp-2 for things.v1beta1.example.io (gone from v1.37 on)")
			}
		})
	}
}
