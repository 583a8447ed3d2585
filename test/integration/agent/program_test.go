package agent_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/integration/apiserver"
)

// idleMiB is what an agent may cost each host for months.
const idleMiB = 20

// The program itself, as it is installed, with a kubeconfig laid out as the kubelet's.
// There is no systemd to start probes with: it says so in the Machine.
func TestProgramFollowsItsMachineAndStaysSmall(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	program := build(t, dir)
	c.srv.WriteKubeconfig(t, dir, "system:node:"+c.name, "system:nodes")
	log := start(t, dir, program)

	m := c.eventually("reported by the program", func(m *v1alpha1.Machine) bool { return m.Status.HostFailure != nil })
	assert.Equal(t, "ProbeFailed", m.Status.HostFailure.Reason)
	assert.Contains(t, m.Status.HostFailure.Message, "system bus")
	time.Sleep(3 * time.Second)
	assert.LessOrEqual(t, log.rss(t), idleMiB, "resident memory in MiB")
	t.Logf("resident: %d MiB", log.rss(t))
}

// The kubelet's certificate is replaced every few months; the agent must not need a restart.
func TestProgramUsesTheRotatedCertificate(t *testing.T) {
	c := onServer(t, apiserver.Start(t))
	dir := t.TempDir()
	program := build(t, dir)
	// The first certificate is one that the API server does not let in: the agent waits.
	c.srv.WriteKubeconfig(t, dir, "system:node:"+c.name, "system:nodes")
	c.srv.WriteClientPEM(t, dir, "system:node:nobody", "system:nodes")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent.yaml"), config(dir, c.name), 0o600))
	start(t, dir, program)
	time.Sleep(2 * time.Second)
	require.Nil(t, c.machine().Status.HostFailure)

	c.srv.WriteClientPEM(t, dir, "system:node:"+c.name, "system:nodes")
	require.NoError(t, c.srv.StopAPI()) // the old connection ends, as it does with time
	require.NoError(t, c.srv.StartAPI(t.Context()))
	c.eventuallyWithin(2*time.Minute, "reported with the new certificate", func(m *v1alpha1.Machine) bool { return m.Status.HostFailure != nil })
}

type program struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func build(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "refit-agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/refit-dev/refit/cmd/refit-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "refit-executor"), nil, 0o755))
	return path
}

func config(dir, machine string) []byte {
	return fmt.Appendf(nil, "kubeconfig: %s\nnamespace: %s\nmachine: %q\n", filepath.Join(dir, "kubelet.conf"), namespace, machine)
}

func start(t *testing.T, dir, path string) *program {
	t.Helper()
	file := filepath.Join(dir, "agent.yaml")
	if _, err := os.Stat(file); err != nil {
		require.NoError(t, os.WriteFile(file, config(dir, ""), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "etc"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "etc/machine-id"), []byte("0123456789abcdef0123456789abcdef\n"), 0o644))
	p := &program{cmd: exec.Command(path, "run", "--config", file, "--root", dir)}
	p.cmd.Env = append(os.Environ(), "GOMEMLIMIT=24MiB", "GOGC=50", "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+filepath.Join(dir, "no-bus"))
	p.cmd.Stderr = &p.out
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		assert.NoError(t, p.cmd.Wait(), "the agent ends well when told to stop")
		if t.Failed() {
			t.Log(p.out.String())
		}
	})
	return p
}

var rssLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

func (p *program) rss(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(t, err)
	match := rssLine.FindSubmatch(text)
	require.NotNil(t, match)
	kib, err := strconv.Atoi(string(match[1]))
	require.NoError(t, err)
	return kib / 1024
}
