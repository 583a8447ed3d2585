package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/systemd"
)

// The test binary plays the kubelet: a copy of it with a version at its end answers
// with the version at the end of the very file that it was started from.
var marker = []byte("\nREFIT-TEST-VERSION=")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		data, _ := os.ReadFile("/proc/self/exe")
		_, _ = fmt.Printf("Kubernetes %s\n", data[bytes.LastIndex(data, marker)+len(marker):])
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "--run" {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func writeProgram(t *testing.T, path, version string) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, files.WriteAtomic(path, append(append(data, marker...), version...), 0o755))
}

// units is a service manager that knows one process.
type units struct{ pid uint32 }

func (u units) Status(_ context.Context, unit string) (systemd.Status, error) {
	if u.pid == 0 {
		return systemd.Status{Unit: unit, LoadState: "loaded", ActiveState: "failed", SubState: "failed"}, nil
	}
	return systemd.Status{Unit: unit, LoadState: "loaded", ActiveState: "active", SubState: "running", MainPID: u.pid}, nil
}

func TestTheVersionIsThatOfTheProcessAfterItsProgramWasReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet")
	writeProgram(t, path, "v1.36.3")
	process, err := os.StartProcess(path, []string{path, "--run"}, &os.ProcAttr{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill(); _, _ = process.Wait() })
	k := New(t.TempDir(), units{pid: uint32(process.Pid)})

	version, err := k.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3", version)

	writeProgram(t, path, "v1.37.2")
	onDisk, err := ProgramVersion(t.Context(), command.Exec{}, path)
	require.NoError(t, err)
	assert.Equal(t, "v1.37.2", onDisk)
	version, err = k.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3", version, "the old program still runs")

	require.NoError(t, os.Remove(path))
	version, err = k.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3", version, "a deleted program can still be asked")
}

func TestAKubeletThatDoesNotRunHasNoVersion(t *testing.T) {
	_, err := New("/", units{}).Version(t.Context())
	require.ErrorIs(t, err, ErrNotRunning)
	assert.ErrorContains(t, err, "failed")
}

func TestAnAnswerThatIsNoVersionIsAnError(t *testing.T) {
	_, err := ProgramVersion(t.Context(), command.Exec{}, "/bin/echo")
	require.ErrorContains(t, err, "unexpected answer")
}

func TestHealthIsAskedWhereTheConfigurationSays(t *testing.T) {
	healthy := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !healthy {
			http.Error(w, "syncloop is stuck", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	k := New(t.TempDir(), units{})
	config := filepath.Join(k.Root, ConfigPath)
	require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o755))

	write := func(text string) { require.NoError(t, os.WriteFile(config, []byte(text), 0o600)) }
	write("healthzBindAddress: 0.0.0.0\nhealthzPort: " + port + "\n")
	require.NoError(t, k.Healthz(t.Context()))
	healthy = false
	require.ErrorContains(t, k.Healthz(t.Context()), "syncloop is stuck")
	write("healthzPort: 0\n")
	require.ErrorContains(t, k.Healthz(t.Context()), "healthzPort is 0")
	write("healthzPort: [\n")
	require.ErrorContains(t, k.Healthz(t.Context()), ConfigPath)
}
