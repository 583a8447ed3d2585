// Package vagrant holds what can be tried of the virtual machines' fleet without virtual machines.
package vagrant

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// provisioned runs provision/cluster.sh with a kubeadm that does nothing, and returns how that was
// called and the configuration that it was given.
func provisioned(t *testing.T, role string) (call string, config string) {
	t.Helper()
	dir := t.TempDir()
	stub := "#!/bin/sh\necho \"$@\" >" + dir + "/call\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubeadm"), []byte(stub), 0o755))
	cmd := exec.Command("bash", "provision/cluster.sh")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "REFIT_TEST_ETC="+dir, "ROLE="+role, "NAME=cp-2", "ADDRESS=192.168.56.12",
		"KUBERNETES=v1.36.3", "MACHINES=cp-1=192.168.56.11=11 cp-2=192.168.56.12=12 worker-1=192.168.56.21=21",
		"TOKEN=abcdef.0123456789abcdef", "CERTIFICATE_KEY="+strings.Repeat("ab", 32))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, "kubernetes", "kubeadm.yaml"))
	require.NoError(t, err)
	called, err := os.ReadFile(filepath.Join(dir, "call"))
	require.NoError(t, err)
	return string(called), string(text)
}

func TestKubeadmTakesTheConfigurationOfEachRole(t *testing.T) {
	for role, want := range map[string]struct{ call, has, hasNot string }{
		"first":         {"init ", "\n  - 192.168.56.11\n  - 192.168.56.12\n", "192.168.56.21"},
		"control-plane": {"join ", "\n  certificateKey: " + strings.Repeat("ab", 32), "ClusterConfiguration"},
		"worker":        {"join ", "\n  name: cp-2\n", "controlPlane"},
	} {
		t.Run(role, func(t *testing.T) {
			call, config := provisioned(t, role)
			assert.Contains(t, call, want.call)
			assert.Contains(t, config, want.has)
			assert.NotContains(t, config, want.hasNot)
			kubeadm := realKubeadm()
			if kubeadm == "" {
				t.Skip("no kubeadm among the fleet's artefacts (make artefacts): what it says of the configuration is not known")
			}
			file := filepath.Join(t.TempDir(), "kubeadm.yaml")
			require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
			out, err := exec.Command(kubeadm, "config", "validate", "--config", file).CombinedOutput()
			assert.NoError(t, err, string(out))
			assert.NotContains(t, string(out), "unknown field")
		})
	}
}

// realKubeadm is one of the test fleet's layers; "" where it has none.
func realKubeadm() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(cache, "refit-fleet", "layers", "kubernetes-v1.36*", "usr", "bin", "kubeadm"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

func TestAMemberOfTheClusterIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "kubernetes"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubernetes", "kubelet.conf"), nil, 0o600))
	cmd := exec.Command("bash", "provision/cluster.sh")
	cmd.Env = append(os.Environ(), "REFIT_TEST_ETC="+dir, "ROLE=worker", "NAME=w", "ADDRESS=1", "KUBERNETES=v1.36.3", "MACHINES=w=1=1", "TOKEN=t", "CERTIFICATE_KEY=k")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "already")
	assert.NoFileExists(t, filepath.Join(dir, "kubernetes", "kubeadm.yaml"))
}

// Every setting of fleet.yaml names the variable that overrides it, and the Vagrantfile uses it.
func TestEverySettingIsUsedAndCanBeOverridden(t *testing.T) {
	settings, err := os.ReadFile("fleet.yaml")
	require.NoError(t, err)
	vagrantfile, err := os.ReadFile("Vagrantfile")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^([a-z_]+): .*# (REFIT_[A-Z_]+)`).FindAllStringSubmatch(string(settings), -1)
	require.Len(t, rows, strings.Count(string(settings), "REFIT_"))
	for _, row := range rows {
		assert.Equal(t, "REFIT_"+strings.ToUpper(row[1]), row[2])
		assert.Regexp(t, `fleet\[["']`+row[1]+`["']\]`, string(vagrantfile))
	}
}
