package etcd

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	envBinaries = "REFIT_TEST_BIN"
	envRequire  = "REFIT_REQUIRE_API"
	envCache    = "REFIT_FLEET_CACHE"

	freeze = syscall.SIGSTOP
	thaw   = syscall.SIGCONT
)

// program is the newest etcd of the fleet's cache.
func program(t testing.TB) string {
	t.Helper()
	path := filepath.Join(os.Getenv(envBinaries), "etcd")
	if os.Getenv(envBinaries) == "" {
		path = filepath.Join(newest(cache(t)), "bin/etcd")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(envRequire) != "" {
			t.Fatalf("no etcd to test against: %v", err)
		}
		t.Skipf("no etcd to test against: %v", err)
	}
	return path
}

func cache(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(envCache); dir != "" {
		return filepath.Join(dir, "etcd")
	}
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(dir, "refit-fleet/etcd")
}

func newest(dir string) string {
	entries, _ := os.ReadDir(dir) // none: what is looked for there is not found
	var names []string
	for _, entry := range entries {
		if _, err := version.ParseSemantic(entry.Name()); err == nil {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return filepath.Join(dir, "none")
	}
	slices.SortFunc(names, func(a, b string) int {
		if version.MustParseSemantic(a).LessThan(version.MustParseSemantic(b)) {
			return -1
		}
		return 1
	})
	return filepath.Join(dir, names[len(names)-1])
}

// process is a member that runs.
type process struct{ cmd *exec.Cmd }

// startProcess runs a program for as long as the test runs; its end is shown when the test fails.
func startProcess(t testing.TB, log, program string, args ...string) *process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close() //nolint:errcheck // the child has its own
	p := &process{cmd: exec.Command(program, args...)}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("%s ends:\n%s", log, text[max(0, len(text)-600):])
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}
