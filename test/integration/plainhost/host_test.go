package plainhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// programs is where agent and executor lie beside each other, as in a package.
var programs string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the programs:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "refit-plainhost-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	programs = dir
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir+"/", "github.com/refit-dev/refit/cmd/refit-agent", "github.com/refit-dev/refit/cmd/refit-executor")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, out)
	}
	return m.Run(), nil
}

// answer is what a program left.
type answer struct {
	stdout, stderr string
	code           int
}

// agent runs refit-agent without a configuration of its own, so that the defaults hold.
func agent(t *testing.T, env []string, args ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out, fault bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "refit-agent"), append([]string{"--config", filepath.Join(t.TempDir(), "agent.yaml")}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &out, &fault
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NotContains(t, fault.String(), "goroutine ", "it crashed")
	return answer{out.String(), fault.String(), cmd.ProcessState.ExitCode()}
}

// asked is what a tool of this machine says; "" with false where there is no such tool.
func asked(t *testing.T, argv ...string) (string, bool) {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		return "", false
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	require.NoError(t, err, "%q", argv)
	return strings.TrimSpace(string(out)), true
}

// firstLine of a file of this machine; "" where there is none.
func firstLine(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// hasBus says whether there is a system bus here that somebody answers on.
func hasBus() bool {
	for _, socket := range []string{"/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"} {
		if _, err := os.Stat(socket); err == nil {
			return true
		}
	}
	return false
}

// hasKubelet looks for the process and for the program.
func hasKubelet() bool {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(text)) == "kubelet" {
			return true
		}
	}
	_, err := exec.LookPath("kubelet")
	return err == nil
}

// watched is what asking must leave as it is. With systemd, requests and results of
// probes are exchanged in /run/refit, which is nobody's but Refit's.
func watched() []string {
	dirs := []string{"/etc", "/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt", "/var/lib/refit"}
	if !hasBus() || os.Geteuid() != 0 {
		dirs = append(dirs, "/run/refit")
	}
	return dirs
}

// shape is everything about files but what is in them: one line for each, by path.
type shape map[string]string

func look(t *testing.T) shape {
	t.Helper()
	seen := shape{}
	for _, dir := range watched() {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil { // not there, gone meanwhile, or not for us to see
				return nil //nolint:nilerr // what cannot be seen cannot be compared
			}
			info, err := entry.Info()
			if err == nil {
				seen[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.NotEmpty(t, seen)
	return seen
}

// changes are the paths that came, went or are not as they were.
func (s shape) changes(now shape) []string {
	var paths []string
	for path, was := range s {
		if now[path] != was {
			paths = append(paths, path)
		}
	}
	for path := range now {
		if _, known := s[path]; !known {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// unchanged runs something and looks whether the machine is as it was.
func unchanged(t *testing.T, do func()) {
	t.Helper()
	before := look(t)
	do()
	require.Empty(t, before.changes(look(t)), "asking changes nothing on the machine")
}
