package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// A hop without a kubelet in it knows the API servers all the same: it may start one.
func TestARebootIntoAKubeletOfItsOwnIsSeenInTheWholeFleet(t *testing.T) {
	facts := func(installed string) string {
		return `apiVersion: facts.refit.dev/v1
kind: Facts
host: {hostname: w, machineID: id-w, bootID: b}
os: {id: debian, family: apt, cgroupVersion: 2}
reboot: {required: true}
node: {name: w}
kubelet: {running: v1.36.3, installed: ` + installed + `, active: true}
kubeadm: {installed: v1.36.3}
containerRuntime: {name: containerd, running: 2.1.4, installed: 2.1.4, ready: true}
packages: {manager: apt}
`
	}
	objects := controlPlane("cp", "v1.36.3", "v1.36.3") +
		strings.Replace(worker("w", "v1.36.3", "v1.36.3"), "spec: {", "spec: {os: {reboot: IfRequired}, ", 1)
	for name, tc := range map[string]struct{ installed, reason string }{
		"the one that runs":       {"v1.36.3", ""},
		"one that is too new":     {"v1.37.2", upgrade.ReasonSkewViolated},
		"a patch nobody wants":    {"v1.36.4", upgrade.ReasonRestartPending},
		"one that is far too old": {"v1.32.9", upgrade.ReasonSkewViolated},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := planned(t, objects, facts(tc.installed), "w")
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			if tc.reason == "" {
				assert.Equal(t, preview.StatePending, list.Items[0].State, "%+v", list.Items[0].Refusal)
				return
			}
			require.NotNil(t, list.Items[0].Refusal)
			assert.Equal(t, tc.reason, list.Items[0].Refusal.Reason, list.Items[0].Refusal.Message)
			assert.Empty(t, list.Items[0].Hops)
		})
	}
}

// What is pending and stays so behind the hops is told, whether there are any or not.
func TestARestartThatNoHopMakesIsToldBehindThem(t *testing.T) {
	reported := controlPlane("cp", "v1.37.2", "v1.37.2") + strings.Replace(worker("w", "v1.36.3", "v1.37.2"), "status:\n", "status:\n  conditions: [{type: RestartPending, status: \"True\", reason: OldProcessRuns, message: \"containerd runs 2.1.4, package containerd 2.2.0-1 is installed\", lastTransitionTime: \"2026-01-01T00:00:00Z\"}]\n", 1)
	list, err := planned(t, reported, "", "w")
	require.NoError(t, err)
	require.Len(t, list.Items[0].Hops, 1)
	var told []string
	for _, f := range list.Items[0].Findings {
		if f.Reason == upgrade.FindingRestartPending {
			told = append(told, f.Message)
		}
	}
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "the agent on the host judges what would start")
}
