package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/hack/release/sums"
)

// built lays one small program out as if it were everything that a release builds.
func built(t *testing.T, mode os.FileMode) string {
	t.Helper()
	one := filepath.Join(t.TempDir(), "program")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", one, "./testdata/program").CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(one)
	require.NoError(t, err)
	root := t.TempDir()
	put := func(platform, name string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, platform), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, platform, name), data, mode))
	}
	for _, arch := range hostArchs {
		for _, name := range []string{"refit-agent", "refit-executor", "refit-coordinator"} {
			put("linux-"+arch, name)
		}
	}
	for _, platform := range desks {
		if strings.HasPrefix(platform, "windows") {
			put(platform, "kubectl-refit.exe")
		} else {
			put(platform, "kubectl-refit")
		}
	}
	return root
}

func TestAReleaseMadeTwiceIsTheSame(t *testing.T) {
	var all []string
	for _, mode := range []os.FileMode{0o755, 0o700} {
		r := release{version: "v1.2.3", at: time.Unix(1_700_000_000, 0), root: "../..", programs: built(t, mode), out: t.TempDir()}
		require.NoError(t, r.make())
		require.NoError(t, sums.Check(r.out))
		text, err := os.ReadFile(filepath.Join(r.out, sums.File))
		require.NoError(t, err)
		all = append(all, string(text))
	}
	assert.Equal(t, all[0], all[1])
	var names []string
	for line := range strings.Lines(all[0]) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		names = append(names, name)
	}
	want := []string{
		"refit-agent_1.2.3-1_amd64.deb", "refit-agent_1.2.3-1_arm64.deb", "refit-agent-1.2.3-1.x86_64.rpm", "refit-agent-1.2.3-1.aarch64.rpm",
		"refit_v1.2.3_linux_amd64.tar.gz", "refit_v1.2.3_linux_arm64.tar.gz", "kubectl-refit_v1.2.3_linux_amd64.tar.gz", "kubectl-refit_v1.2.3_linux_arm64.tar.gz",
		"kubectl-refit_v1.2.3_darwin_amd64.tar.gz", "kubectl-refit_v1.2.3_darwin_arm64.tar.gz", "kubectl-refit_v1.2.3_windows_amd64.zip",
		"refit-1.2.3.tgz", "refit_v1.2.3_sbom.cdx.json",
	}
	slices.Sort(want)
	slices.Sort(names)
	assert.Equal(t, want, names)
}

func TestAReleaseWithoutProgramsIsNone(t *testing.T) {
	r := release{version: "v1.2.3", at: time.Unix(1, 0), root: "../..", programs: t.TempDir(), out: t.TempDir()}
	require.ErrorContains(t, r.make(), "refit-agent")
	require.ErrorContains(t, r.makeSBOM(), "there are none")
}
