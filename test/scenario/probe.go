package scenario

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// Seen is what an independent look at a host finds. It uses nothing of Refit.
type Seen struct {
	Kubelet   string            // of the running process, asked through /proc
	Runtime   string            // as containerd's socket answers
	APIServer string            // /version on this host's own address; "" on a worker
	Packages  map[string]string // as dpkg says
	BootID    string
	MachineID string
}

// Look probes a host from outside.
func (e *Env) Look(ctx context.Context, h *testfleet.Host) (Seen, error) {
	var s Seen
	pid, err := text(h.Exec(ctx, nil, "systemctl", "show", "--property=MainPID", "--value", "kubelet.service"))
	if err != nil {
		return s, err
	}
	// The file on disk may be newer: the kernel's link to the running program is what counts.
	version, err := text(h.Exec(ctx, nil, "/proc/"+pid+"/exe", "--version"))
	if err != nil {
		return s, err
	}
	s.Kubelet = strings.TrimPrefix(version, "Kubernetes ")
	ctr, err := h.Exec(ctx, nil, "ctr", "version")
	if err != nil {
		return s, err
	}
	s.Runtime = serverVersion(ctr)
	if s.Packages, err = packages(ctx, h); err != nil {
		return s, err
	}
	if s.BootID, err = text(h.Exec(ctx, nil, "cat", "/proc/sys/kernel/random/boot_id")); err != nil {
		return s, err
	}
	if s.MachineID, err = text(h.Exec(ctx, nil, "cat", "/etc/machine-id")); err != nil {
		return s, err
	}
	if h.ControlPlane() {
		s.APIServer, err = apiVersion(ctx, h.Address())
	}
	return s, err
}

func text(out []byte, err error) (string, error) { return strings.TrimSpace(string(out)), err }

// serverVersion finds the daemon's answer in `ctr version`, which prints the client's first.
func serverVersion(out []byte) string {
	_, server, _ := bytes.Cut(out, []byte("Server:"))
	sc := bufio.NewScanner(bytes.NewReader(server))
	for sc.Scan() {
		if v, ok := strings.CutPrefix(strings.TrimSpace(sc.Text()), "Version:"); ok {
			return strings.TrimPrefix(strings.TrimSpace(v), "v")
		}
	}
	return ""
}

func packages(ctx context.Context, h *testfleet.Host) (map[string]string, error) {
	out, err := h.Exec(ctx, nil, "dpkg-query", "-W", "-f=${Package} ${db:Status-Abbrev} ${Version}\n", "kubelet", "kubeadm", "kubectl", "containerd.io")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		found[f[0]] = f[2]
		if f[1] != "ii" && f[1] != "hi" {
			found[f[0]] = f[2] + " (" + f[1] + ")"
		}
	}
	return found, nil
}

func apiVersion(ctx context.Context, address string) (string, error) {
	// The certificate is not what is looked at here.
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a probe of a test host
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+":6443/version", nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking the API server on %s: %w", address, err)
	}
	defer resp.Body.Close()
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return "", fmt.Errorf("reading the version of the API server on %s: %w", address, err)
	}
	return v.GitVersion, nil
}
