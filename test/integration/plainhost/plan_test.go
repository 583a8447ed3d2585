package plainhost

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/usage"
)

func machine(t *testing.T, spec string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "machine.yaml")
	text := "apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata:\n  name: plain\nspec:\n  roles: [Worker]\n" + spec
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// waitCode is the exit code of a plan that the host would not carry out now: what nobody has seen may be there later.
const waitCode = usage.ExitWait

func TestAPlanThatNeedsAKubeletIsRefusedWhereThereIsNone(t *testing.T) {
	if hasKubelet() {
		t.Skip("this machine has a kubelet")
	}
	for name, spec := range map[string]string{
		"a kubelet":               "  versions: {kubelet: v1.37.2}\n",
		"a kubelet with settings": "  versions: {kubelet: v1.37.2}\n  kubelet: {configuration: {maxPods: 200}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			var got answer
			unchanged(t, func() { got = agent(t, nil, "plan", "-f", machine(t, spec), "-o", "json") })
			assert.Equal(t, waitCode, got.code, got.stderr)
			var list preview.PlanList
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
			require.Len(t, list.Items, 1)
			require.NotNil(t, list.Items[0].Refusal)
			assert.Equal(t, "VersionUnknown", list.Items[0].Refusal.Reason)
			assert.Empty(t, list.Items[0].Hash, "half a plan is none")
			assert.Contains(t, got.stderr, "VersionUnknown: no kubelet was found on this host")
			assert.Contains(t, got.stderr, "install it, or remove spec.versions.kubelet")
		})
	}
}

// A spec that tries for more than the owner of the host allows touches nothing, and says which of its words it is.
func TestASpecOutsideThePolicyOfTheHostIsRefused(t *testing.T) {
	if _, err := os.Stat("/etc/refit/policy.yaml"); err == nil {
		t.Skip("this machine has a policy of its own")
	}
	for name, tc := range map[string]struct{ spec, says string }{
		"a source that the host does not have": {"  os: {packages: [{name: refit-test-no-such}]}\n  packageSources: [{name: kubernetes, uri: \"https://mirror.invalid/{minor}/deb/\", suites: [/], signedBy: mirror}]\n",
			"HostPolicy: package source \"kubernetes\" at \"https://mirror.invalid/"},
		"the removal of the SSH server":     {"  os: {packages: [{name: openssh-server, state: Absent}]}\n", "ProtectedPackage: "},
		"the removal of Refit":              {"  os: {packages: [{name: refit-agent, state: Absent}]}\n", "ProtectedPackage: "},
		"the removal of the C library":      {"  os: {packages: [{name: libc6, state: Absent}]}\n", "ProtectedPackage: "},
		"a static pod of its own":           {"  kubelet: {configuration: {staticPodPath: /tmp}}\n", "KubeletConfigurationRefused: spec.kubelet.configuration sets staticPodPath"},
		"static pods from elsewhere":        {"  kubelet: {configuration: {staticPodURL: \"http://evil/\"}}\n", "KubeletConfigurationRefused: "},
		"a kubelet that everybody may tell": {"  kubelet: {configuration: {authorization: {mode: AlwaysAllow}, authentication: {anonymous: {enabled: true}}}}\n", "sets authentication, authorization"},
		"a port without a question":         {"  kubelet: {configuration: {readOnlyPort: 10255}}\n", "sets readOnlyPort"},
	} {
		t.Run(name, func(t *testing.T) {
			var got answer
			unchanged(t, func() { got = agent(t, nil, "plan", "-f", machine(t, tc.spec)) })
			assert.Equal(t, usage.ExitRefused, got.code, got.stdout+got.stderr)
			assert.Contains(t, got.stdout+got.stderr, tc.says)
		})
	}
}

func TestAControlPlaneIsRefusedWhereThereIsNone(t *testing.T) {
	if _, err := os.Stat("/etc/kubernetes/manifests/kube-apiserver.yaml"); err == nil {
		t.Skip("this machine has a control plane")
	}
	var got answer
	path := filepath.Join(t.TempDir(), "machine.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: refit.dev/v1alpha1\nkind: Machine\nmetadata:\n  name: plain\nspec:\n  roles: [ControlPlane]\n  versions: {controlPlane: v1.37.2, kubelet: v1.37.2}\n"), 0o600))
	unchanged(t, func() { got = agent(t, nil, "plan", "-f", path) })
	assert.Equal(t, usage.ExitCode, got.code)
	assert.Contains(t, got.stderr, path+":6: spec.roles: ControlPlane is not what this host is")
}

// A runtime that nobody installed is not installed by an upgrade.
func TestARuntimeIsRefusedWhereThereIsNone(t *testing.T) {
	for _, socket := range []string{"/run/containerd/containerd.sock", "/var/run/crio/crio.sock"} {
		if _, err := os.Stat(socket); err == nil {
			t.Skip("this machine has a container runtime")
		}
	}
	var got answer
	unchanged(t, func() {
		got = agent(t, nil, "plan", "-f", machine(t, "  versions: {containerRuntime: {name: containerd, version: 2.4.2}}\n"))
	})
	assert.Equal(t, waitCode, got.code, got.stderr)
	assert.Regexp(t, `refused: [A-Z][A-Za-z]+: .*runtime`, got.stdout)
	assert.Empty(t, got.stderr, "it is said once")
}

func TestAPlanForWhatTheHostIsAlreadyHasNothingToDo(t *testing.T) {
	version, ok := asked(t, "dpkg-query", "-W", "-f", "${Version}", "dpkg")
	if !ok {
		t.Skip("this machine has no dpkg")
	}
	var got answer
	unchanged(t, func() {
		got = agent(t, nil, "plan", "-f", machine(t, "  os: {packages: [{name: dpkg, version: \""+version+"\"}, {name: no-such-package, state: Absent}]}\n"))
	})
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "Nothing to do")
}

func TestAFileThatIsNoMachineIsNamedWithItsFault(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no YAML":          {"kind: [", "yaml"},
		"another kind":     {"apiVersion: v1\nkind: Pod\n", ":2: kind: Pod is not read here: give Machine"},
		"a field mistyped": {"apiVersion: refit.dev/v1alpha1\nkind: Machine\nspec: {version: {}}\n", ":3: spec.version: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "machine.yaml")
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			var got answer
			unchanged(t, func() { got = agent(t, nil, "plan", "-f", path) })
			assert.Equal(t, usage.ExitCode, got.code)
			assert.Contains(t, got.stderr, path)
			assert.Contains(t, got.stderr, tc.want)
		})
	}
}
