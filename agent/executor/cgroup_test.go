package executor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// B57: what the new package makes of its configuration is seen only once it runs.
func TestARuntimeThatComesBackWithAnotherCgroupDriverIsRolledBack(t *testing.T) {
	const patched = "1.7.29"
	for name, tc := range map[string]struct {
		after string
		state journal.State
	}{
		"with another":  {"cgroupfs", journal.Failed},
		"with the same": {"systemd", journal.Successful},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostfake.New(oldKubernetes, oldRuntime)
			h.Files["/var/lib/kubelet/config.yaml"] = hostfake.File{Content: "cgroupDriver: systemd\n", Mode: 0o644}
			h.CgroupDrivers = map[string]string{oldRuntime: "systemd", patched: tc.after}
			b := newBench(t, h, sealed(upgrade.Plan{AssignmentID: "4-abc", Steps: []upgrade.Step{
				{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Kubelet: "v" + oldKubernetes, Runtime: oldRuntime}},
				{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{change("containerd", oldRuntime+"-1", patched+"-1")}},
				{Kind: upgrade.StepReloadUnits},
				{Kind: upgrade.StepRestartUnit, Unit: "containerd.service"},
				{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{Kubelet: "v" + oldKubernetes, RuntimeName: "containerd", Runtime: patched, StartSandbox: true}},
			}}))
			rec := b.finish()
			require.Equal(t, tc.state, rec.State, rec.Message)
			if tc.state == journal.Successful {
				return
			}
			assert.Equal(t, upgrade.FindingCgroupDriver, rec.Reason)
			assert.Contains(t, rec.Message, "the kubelet is configured for cgroup driver systemd and containerd uses cgroupfs since its restart")
			assert.True(t, rec.RolledBack, rec.Message)
			assert.Equal(t, oldRuntime, b.host.Snapshot().Runtime)
		})
	}
}
