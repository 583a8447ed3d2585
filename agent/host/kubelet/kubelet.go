// Package kubelet looks at the kubelet that runs on this host.
package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/systemd"
)

const (
	// Unit of the kubelet.
	Unit = "kubelet.service"
	// ConfigPath of kubeadm's kubelet configuration.
	ConfigPath = "/var/lib/kubelet/config.yaml"

	versionTimeout = 30 * time.Second
	healthTimeout  = 10 * time.Second
)

// ErrNotRunning says that there is no kubelet process.
var ErrNotRunning = errors.New("the kubelet does not run")

// Units tells the state of a unit.
type Units interface {
	Status(ctx context.Context, unit string) (systemd.Status, error)
}

// Kubelet is the kubelet of this host.
type Kubelet struct {
	Root   string
	Units  Units
	Runner command.Runner
}

// New returns the kubelet of the host under root.
func New(root string, units Units) *Kubelet {
	return &Kubelet{Root: root, Units: units, Runner: command.Exec{}}
}

// Version is that of the running process, whatever is on disk by now.
func (k *Kubelet) Version(ctx context.Context) (string, error) {
	status, err := k.Units.Status(ctx, Unit)
	if err != nil {
		return "", fmt.Errorf("looking for the kubelet: %w", err)
	}
	if status.MainPID == 0 {
		return "", fmt.Errorf("%w: %s is %s (%s)", ErrNotRunning, Unit, status.ActiveState, status.SubState)
	}
	return RunningVersion(ctx, k.Runner, int(status.MainPID))
}

// RunningVersion asks the very program that a process runs. The link in /proc leads
// to that file even after it was replaced or deleted, so the answer is never that of
// the new one on disk.
func RunningVersion(ctx context.Context, runner command.Runner, pid int) (string, error) {
	return ProgramVersion(ctx, runner, filepath.Join("/proc", strconv.Itoa(pid), "exe"))
}

// ProgramVersion is what a program of Kubernetes answers to --version.
func ProgramVersion(ctx context.Context, runner command.Runner, path string) (string, error) {
	result, err := runner.Run(ctx, command.Command{Argv: []string{path, "--version"}, Timeout: versionTimeout})
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(result.Stdout), "\n")
	version, ok := strings.CutPrefix(line, "Kubernetes ")
	if version = strings.TrimSpace(version); !ok || version == "" {
		return "", fmt.Errorf("asking %s for its version: unexpected answer %q", path, command.Tail(result.Stdout, 200))
	}
	return version, nil
}

// Healthz asks the kubelet's own health endpoint on this host.
func (k *Kubelet) Healthz(ctx context.Context) error {
	address, err := k.healthAddress(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("asking the kubelet for its health: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the kubelet for its health: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the kubelet for its health at %s: %s: %s", address, answer.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// healthAddress is where the kubelet's configuration puts the endpoint.
func (k *Kubelet) healthAddress(ctx context.Context) (string, error) {
	config := struct {
		HealthzBindAddress string `json:"healthzBindAddress"`
		HealthzPort        *int   `json:"healthzPort"`
	}{}
	effective, err := k.configuration(ctx)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(effective)
	if err != nil {
		return "", fmt.Errorf("reading the kubelet's configuration: %w", err)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", fmt.Errorf("reading the kubelet's configuration %s: %w", ConfigPath, err)
	}
	host, port := config.HealthzBindAddress, 10248
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	if config.HealthzPort != nil {
		port = *config.HealthzPort
	}
	if port == 0 {
		return "", fmt.Errorf("asking the kubelet for its health: healthzPort is 0 in %s, so there is no endpoint: set it", ConfigPath)
	}
	if port < 0 || port > math.MaxUint16 {
		return "", fmt.Errorf("asking the kubelet for its health: healthzPort %d in %s is no port: correct it", port, ConfigPath)
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}
