// Package controlplane looks at the control plane of this very host: its own API
// server, not whichever one a load balancer picks, and its static pods.
package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	manifestDir  = "/etc/kubernetes/manifests"
	caPath       = "/etc/kubernetes/pki/ca.crt"
	clientPath   = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	askTimeout   = 10 * time.Second
	maxAnswer    = 1 << 20
	apiserverPod = "kube-apiserver"
)

// ErrNone says that this host has no control plane.
var ErrNone = errors.New("this host has no static pod manifest of an API server")

// ControlPlane is the control plane of the host under Root.
type ControlPlane struct {
	Root string
}

// New returns the control plane of the host under root.
func New(root string) *ControlPlane { return &ControlPlane{Root: root} }

func (c *ControlPlane) path(p string) string { return filepath.Join(c.Root, p) }

// Exists says whether the host has an API server of its own.
func (c *ControlPlane) Exists() bool {
	_, err := os.Stat(c.path(filepath.Join(manifestDir, apiserverPod+".yaml")))
	return err == nil
}

// Version is what this host's API server answers at /version. Only gitVersion counts:
// the minor beside it may read "27+".
func (c *ControlPlane) Version(ctx context.Context) (string, error) {
	body, err := c.get(ctx, "/version")
	if err != nil {
		return "", err
	}
	return versionIn(body)
}

func versionIn(body []byte) (string, error) {
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("reading the version of the API server: %w", err)
	}
	if answer.GitVersion == "" {
		return "", errors.New("reading the version of the API server: the answer has no gitVersion")
	}
	return answer.GitVersion, nil
}

// Livez asks this host's API server whether it lives.
func (c *ControlPlane) Livez(ctx context.Context) error {
	_, err := c.get(ctx, "/livez")
	return err
}

// get asks without credentials first, as kubeadm's own probes do, and with the
// kubelet's certificate where anonymous requests are turned off.
func (c *ControlPlane) get(ctx context.Context, path string) ([]byte, error) {
	address, err := c.Address()
	if err != nil {
		return nil, err
	}
	body, status, err := c.ask(ctx, address, path, false)
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		body, status, err = c.ask(ctx, address, path, true)
	}
	if err != nil {
		return nil, fmt.Errorf("asking this host's API server at %s%s: %w", address, path, err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("asking this host's API server at %s%s: status %d: %s", address, path, status, strings.TrimSpace(string(body)))
	}
	return body, nil
}

func (c *ControlPlane) ask(ctx context.Context, address, path string, withCertificate bool) ([]byte, int, error) {
	config, err := c.tls(withCertificate)
	if err != nil {
		return nil, 0, err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, Proxy: nil} // never through a proxy: it is this host
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("making a request: %w", err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // wrapped by get, which knows both attempts
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, answer.StatusCode, fmt.Errorf("reading the answer: %w", err)
	}
	return body, answer.StatusCode, nil
}

func (c *ControlPlane) tls(withCertificate bool) (*tls.Config, error) {
	ca, err := os.ReadFile(c.path(caPath))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading the cluster's CA: no certificate in %s", caPath)
	}
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if withCertificate {
		pair, err := tls.LoadX509KeyPair(c.path(clientPath), c.path(clientPath))
		if err != nil {
			return nil, fmt.Errorf("loading the kubelet's client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Address of this host's own API server, from its static pod manifest.
func (c *ControlPlane) Address() (string, error) {
	pod, err := c.manifest(apiserverPod)
	if errors.Is(err, os.ErrNotExist) {
		return "", ErrNone
	}
	if err != nil {
		return "", err
	}
	host := firstOf(pod.flag("advertise-address"), pod.flag("bind-address"), "127.0.0.1")
	return net.JoinHostPort(host, firstOf(pod.flag("secure-port"), "6443")), nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
