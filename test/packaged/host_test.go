package packaged

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// fleet is the one host, which the first test that needs it brings up.
var fleet *testfleet.Fleet

func TestMain(m *testing.M) {
	code := m.Run()
	if fleet != nil {
		if err := errors.Join(fleet.Down(context.Background()), os.RemoveAll(os.Getenv("REFIT_FLEET_STATE"))); err != nil {
			fmt.Fprintln(os.Stderr, "taking the host down:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// host is a real one, without Refit and without a cluster.
type host struct {
	*testfleet.Host
	t *testing.T
}

func realHost(t *testing.T) *host {
	t.Helper()
	if os.Getenv("REFIT_FLEET") == "" || os.Geteuid() != 0 {
		t.Skip("set REFIT_FLEET=1 (as root) to boot a real host: make test-fleet")
	}
	if fleet == nil {
		root, err := checkout.Root()
		require.NoError(t, err)
		testfleet.Program = filepath.Join(root, "bin", "fleet")
		dir, err := os.MkdirTemp("/var/tmp", "refit-packaged-")
		require.NoError(t, err)
		require.NoError(t, os.Setenv("REFIT_FLEET_STATE", dir))
		fleet, err = testfleet.Up(t.Context(), testfleet.Options{
			Name: "packaged", Workers: 1, NoCluster: true, Progress: t.Output(), Kubernetes: "v1.36.3", Containerd: "v1.7.35",
		})
		require.NoError(t, err)
	}
	return &host{fleet.Hosts()[0], t}
}

// try runs a script on the host.
func (h *host) try(script string) (string, error) {
	h.t.Helper()
	out, err := h.Exec(h.t.Context(), nil, "bash", "-ec", "exec 2>&1; "+script)
	return strings.TrimSpace(string(out)), err
}

func (h *host) sh(script string) string {
	h.t.Helper()
	out, err := h.try(script)
	require.NoError(h.t, err, "%s\n%s", script, out)
	return out
}

func (h *host) eventually(what, script string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		_, err := h.try(script)
		return err == nil
	}, 2*time.Minute, 500*time.Millisecond, what)
}

// built are the directories of packages, by version.
var built = map[string]string{}

// build packs both programs as some version, and returns the package of a format.
func build(t *testing.T, version, format string) string {
	t.Helper()
	if built[version] == "" {
		root, err := checkout.Root()
		require.NoError(t, err)
		out, err := os.MkdirTemp(os.Getenv("REFIT_FLEET_STATE"), "packages-")
		require.NoError(t, err)
		programs := t.TempDir()
		run(t, root, "go", "build", "-ldflags", "-s -w -X github.com/refit-dev/refit/pkg/version.Version="+version,
			"-o", filepath.Join(programs, "linux-"+runtime.GOARCH)+"/", "./cmd/refit-agent", "./cmd/refit-executor")
		run(t, filepath.Join(root, "hack/release"), "go", "run", ".", "-version", version, "-epoch", "1700000000", "-root", root,
			"-programs", programs, "-out", out, "-packages", runtime.GOARCH)
		built[version] = out
	}
	found, err := filepath.Glob(filepath.Join(built[version], "*."+format))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}
