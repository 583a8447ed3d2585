package packaged

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The scripts of an rpm, run by rpm itself in the root of a host: no service manager runs in it, as in the making of an image.
func TestAnRpmIsInstalledUpgradedAndRemovedInARoot(t *testing.T) {
	h := realHost(t)
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("rpm is not installed")
	}
	root := h.RootDir()
	inside := func(path string) string { return filepath.Join(root, path) }
	rpm := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "rpm", append([]string{"--root", root, "--dbpath", "/var/lib/refit-test-rpm", "--nosignature", "--nodeps"}, args...)...).CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _ = os.RemoveAll(inside("var/lib/refit-test-rpm")) })
	one, two := build(t, "v0.0.1", "rpm"), build(t, "v0.0.2", "rpm")

	out, err := rpm("-i", one)
	require.NoError(t, err, out)
	assert.FileExists(t, inside("usr/bin/refit-executor"))
	_, err = os.Lstat(inside("etc/systemd/system/multi-user.target.wants/refit-resume.service"))
	require.NoError(t, err, "enabled: "+out)

	config, err := os.ReadFile(inside("etc/refit/agent.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(inside("etc/refit/agent.yaml"), append(config, "# mine\n"...), 0o644))
	out, err = rpm("-U", two)
	require.NoError(t, err, out)
	config, err = os.ReadFile(inside("etc/refit/agent.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(config), "# mine")

	require.NoError(t, os.MkdirAll(inside("var/lib/refit/open"), 0o700))
	require.NoError(t, os.WriteFile(inside("var/lib/refit/open/op-7"), nil, 0o600))
	out, err = rpm("-e", "refit-agent")
	require.Error(t, err)
	assert.Contains(t, out, "op-7")
	assert.FileExists(t, inside("usr/bin/refit-agent"))

	require.NoError(t, os.Remove(inside("var/lib/refit/open/op-7")))
	out, err = rpm("-e", "refit-agent")
	require.NoError(t, err, out)
	assert.Contains(t, out, "/var/lib/refit stays")
	assert.NoFileExists(t, inside("usr/bin/refit-agent"))
	_, err = os.Lstat(inside("etc/systemd/system/multi-user.target.wants/refit-resume.service"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	for _, path := range []string{"var/lib/refit", "etc/refit"} {
		require.NoError(t, os.RemoveAll(inside(path)))
	}
}
