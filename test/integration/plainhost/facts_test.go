package plainhost

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// facts of this machine, read strictly: a field that the format does not have is a fault.
func facts(t *testing.T, env []string, format string, args ...string) upgrade.Facts {
	t.Helper()
	got := agent(t, env, append([]string{"facts", "-o", format}, args...)...)
	require.Zero(t, got.code, got.stderr)
	assert.Empty(t, got.stderr)
	text := []byte(got.stdout)
	if format == "json" {
		require.True(t, json.Valid(text), got.stdout)
	} else {
		assert.NotEqual(t, byte('{'), text[0], "YAML for people")
	}
	var f upgrade.Facts
	require.NoError(t, yaml.UnmarshalStrict(text, &f))
	return f
}

func TestFactsAreWhatTheMachineItselfSays(t *testing.T) {
	var f upgrade.Facts
	unchanged(t, func() { f = facts(t, nil, "json", "--package", "dpkg", "--package", "no-such-package") })
	assert.Equal(t, upgrade.FactsAPIVersion, f.APIVersion)
	assert.Equal(t, "Facts", f.Kind)

	hostname, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, hostname, f.Host.Hostname)
	assert.Equal(t, firstLine(t, "/proc/sys/kernel/random/boot_id"), f.Host.BootID)
	assert.Equal(t, firstLine(t, "/etc/machine-id"), f.Host.MachineID)
	for field, want := range map[string][]string{
		f.OS.Kernel:                            {"uname", "-r"},
		f.OS.ID:                                {"sh", "-c", ". /etc/os-release && echo $ID"},
		f.OS.VersionID + " " + f.OS.PrettyName: {"sh", "-c", `. /etc/os-release && echo "$VERSION_ID $PRETTY_NAME"`},
	} {
		said, ok := asked(t, want...)
		require.True(t, ok)
		assert.Equal(t, said, strings.TrimSpace(field))
	}
	assertFreeSpace(t, f)
}

func assertFreeSpace(t *testing.T, f upgrade.Facts) {
	t.Helper()
	at := slices.IndexFunc(f.Mounts, func(m upgrade.MountFacts) bool { return m.Path == "/" })
	require.GreaterOrEqual(t, at, 0)
	var root syscall.Statfs_t
	require.NoError(t, syscall.Statfs("/", &root))
	assert.Equal(t, root.Blocks*uint64(root.Bsize), f.Mounts[at].SizeBytes)
	assert.Positive(t, f.Mounts[at].FreeBytes)
	assert.LessOrEqual(t, f.Mounts[at].FreeBytes, f.Mounts[at].SizeBytes)
}

func TestFactsHaveThePackagesHoldsAndTheLockOfADebianHost(t *testing.T) {
	version, ok := asked(t, "dpkg-query", "-W", "-f", "${Version}", "dpkg")
	if !ok {
		t.Skip("this machine has no dpkg")
	}
	var f upgrade.Facts
	unchanged(t, func() { f = facts(t, nil, "yaml", "--package", "dpkg", "--package", "no-such-package") })
	assert.Equal(t, "apt", f.OS.Family)
	assert.Equal(t, "apt", f.Packages.Manager)
	at := slices.IndexFunc(f.Packages.Installed, func(p upgrade.InstalledPackage) bool { return p.Name == "dpkg" })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, version, f.Packages.Installed[at].Version)
	assert.Equal(t, "installed", f.Packages.Installed[at].State)
	for _, p := range f.Packages.Installed {
		assert.NotEqual(t, "no-such-package", p.Name)
	}
	held, _ := asked(t, "apt-mark", "showhold")
	assert.ElementsMatch(t, strings.Fields(held), f.Packages.Holds)
	assert.NotContains(t, problems(f), "packages")
	if _, err := os.ReadFile("/var/lib/dpkg/lock-frontend"); errors.Is(err, os.ErrPermission) {
		assert.Contains(t, problems(f), "packages.lock", "only root may look at it, and the facts say so")
	} else {
		assert.NotContains(t, problems(f), "packages.lock")
	}
}

func TestBothFormatsSayTheSame(t *testing.T) {
	asJSON, asYAML := facts(t, nil, "json"), facts(t, nil, "yaml")
	for _, f := range []*upgrade.Facts{&asJSON, &asYAML} {
		f.Packages.Lock = nil
		f.Packages.Sources, f.Problems = nil, nil // on a busy machine a probe may end by its time limit
		for i := range f.Mounts {
			f.Mounts[i].FreeBytes = 0 // of the moment
		}
	}
	assert.Equal(t, asJSON, asYAML)
}

// A host that never heard of Kubernetes, and perhaps not of systemd: what cannot be known
// is empty, and says why unless there is nothing to know.
func TestWithoutKubernetesWhatIsMissingIsEmptyAndNotAFault(t *testing.T) {
	if hasKubelet() {
		t.Skip("this machine has a kubelet")
	}
	f := facts(t, nil, "json")
	assert.Nil(t, f.Kubelet)
	assert.Nil(t, f.Control)
	assert.Nil(t, f.Node)
	assert.Empty(t, f.KubeProxy)
	assert.Empty(t, f.Certs)
	for _, field := range problems(f) {
		assert.NotContains(t, []string{"controlPlane", "node", "certificates", "kubeProxy", "containers"}, field)
	}
}

// Whatever this machine has, the agent is sent to a bus that is not there.
func TestWithoutASystemBusItsProbesSaySoAndTheRestComes(t *testing.T) {
	for name, env := range map[string][]string{
		"as this machine is":        nil,
		"sent to where none is":     {"DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + filepath.Join(t.TempDir(), "no-bus")},
		"no bus, and a path to one": {"DBUS_SYSTEM_BUS_ADDRESS=unix:abstract=refit-no-bus"},
	} {
		t.Run(name, func(t *testing.T) {
			if env == nil && hasBus() {
				t.Skip("this machine has a system bus")
			}
			f := facts(t, env, "json")
			assert.Subset(t, problems(f), []string{"kubelet", "conflictingManagers"})
			for _, p := range f.Problems {
				assert.NotEmpty(t, p.Message, p.Field)
			}
			assert.NotEmpty(t, f.Host.BootID)
			assert.NotEmpty(t, f.OS.Kernel)
			assert.NotEmpty(t, f.Mounts)
		})
	}
}

func problems(f upgrade.Facts) []string {
	var names []string
	for _, p := range f.Problems {
		names = append(names, p.Field)
	}
	return names
}
