package fault

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/test/checkout"
)

// applied is what apply prints with -o json, and its exit code.
type applied struct {
	State     apply.State         `json:"state"`
	Refusal   *upgrade.Blocked    `json:"refusal"`
	Operation *v1alpha1.Operation `json:"operation"`
	code      int
}

// apply makes the host what a spec asks for, with the command that a person types.
func (m *machine) apply(spec string) applied {
	m.t.Helper()
	m.write("/root/machine.yaml", "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata: {name: "+m.Name()+"}\nspec:\n  roles: [Worker]\n"+spec)
	code, err := m.ask("refit-agent apply -f /root/machine.yaml --yes --drained -o json >/root/result.json 2>/root/progress; echo $?")
	require.NoError(m.t, err)
	var result applied
	out := m.sh("cat /root/result.json")
	require.NoError(m.t, json.Unmarshal([]byte(out), &result), "%s\n%s", out, m.sh("cat /root/progress"))
	result.code, err = strconv.Atoi(code)
	require.NoError(m.t, err)
	m.t.Logf("apply ended with %d: %s\n%s", result.code, result.State, m.sh("cat /root/progress"))
	return result
}

func runtimeWish(version string) string {
	return fmt.Sprintf("  versions: {containerRuntime: {name: containerd, version: %s}}\n", version)
}

// The host's own command, on a host that can carry it out: refused, failed, done, nothing
// to do, and back again.
func TestApplyEndsWithTheCodeOfWhatBecameOfARealHost(t *testing.T) {
	m := realHost(t)
	root, err := checkout.Root()
	require.NoError(t, err)
	require.NoError(t, m.CopyIn(m.ctx, filepath.Join(root, "bin/refit-agent"), "/usr/bin/refit-agent", 0o755))
	m.write("/etc/refit/hooks.d/raid", "#!/bin/sh\necho the array rebuilds\nexit 1\n")
	m.sh("chmod 0755 /etc/refit/hooks.d/raid")
	defer m.sh("rm /etc/refit/hooks.d/raid")
	was := m.look()
	require.NoError(t, was.at(before), "the tests before leave the host at its first versions")

	m.write("/etc/refit/hold", "inventory until Friday\n")
	held := m.apply(runtimeWish(after.containerd))
	m.sh("rm /etc/refit/hold")
	assert.Equal(t, usage.ExitWait, held.code)
	assert.Equal(t, apply.Refused, held.State)
	if assert.NotNil(t, held.Refusal) {
		assert.Equal(t, "HeldByOwner", held.Refusal.Reason)
	}
	assert.Equal(t, was, m.look())

	failed := m.apply(runtimeWish(after.containerd) + "  hooks: {preApply: [raid]}\n")
	assert.Equal(t, usage.ExitRolledBack, failed.code)
	assert.Equal(t, apply.RolledBack, failed.State)
	assert.Contains(t, failed.description(), "the array rebuilds")
	assert.Equal(t, was, m.look())

	done := m.apply(runtimeWish(after.containerd))
	require.Zero(t, done.code)
	assert.Equal(t, apply.Successful, done.State)
	assert.Contains(t, m.sh("ctr version"), after.containerd)

	again := m.apply(runtimeWish(after.containerd))
	assert.Zero(t, again.code)
	assert.Equal(t, apply.UpToDate, again.State)
	assert.Nil(t, again.Operation)

	back := m.apply(runtimeWish(before.containerd))
	require.Zero(t, back.code)
	assert.Equal(t, apply.Successful, back.State)
	m.eventually("the host is what it was", func() bool { return m.look() == was })

	listed := m.sh("refit-agent operations -o json")
	for _, of := range []applied{failed, done, back} {
		require.NotNil(t, of.Operation)
		assert.Equal(t, 1, strings.Count(listed, strconv.Quote(of.Operation.ID)), of.Operation.ID)
	}
}

func (a applied) description() string {
	if a.Operation == nil {
		return ""
	}
	return a.Operation.Description
}
