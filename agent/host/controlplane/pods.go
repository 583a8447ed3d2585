package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/refit-dev/refit/agent/host/runtime"
)

const podNamespace = "kube-system"

// Containers is what is asked of the container runtime.
type Containers interface {
	Containers(ctx context.Context) ([]runtime.Container, error)
	StopContainer(ctx context.Context, id string) error
}

// Pods are the static pods of a control plane.
type Pods struct {
	*ControlPlane
	Runtime Containers
}

// Container is the id of the container that runs for a component; "" when none does.
func (p Pods) Container(ctx context.Context, component string) (string, error) {
	containers, err := p.Runtime.Containers(ctx)
	if err != nil {
		return "", fmt.Errorf("listing the containers of this host: %w", err)
	}
	newest := runtime.Container{}
	for _, c := range containers {
		if c.Name == component && c.Namespace == podNamespace && c.CreatedAt >= newest.CreatedAt {
			newest = c
		}
	}
	return newest.ID, nil
}

// Stop ends a container; the kubelet starts another one.
func (p Pods) Stop(ctx context.Context, container string) error {
	return p.Runtime.StopContainer(ctx, container) //nolint:wrapcheck // says what it was doing
}

// Answers says that a component is well. API server and etcd must serve the very
// certificate that is on disk. The other two serve one of their own making, and are
// asked for their health alone.
func (p Pods) Answers(ctx context.Context, component string) error {
	switch component {
	case apiserverPod:
		return p.apiServerAnswers(ctx)
	case "etcd":
		return p.etcdAnswers(ctx)
	case "kube-controller-manager":
		return p.healthz(ctx, component, "10257")
	case "kube-scheduler":
		return p.healthz(ctx, component, "10259")
	}
	return fmt.Errorf("%q is no component of a control plane", component)
}

func (p Pods) apiServerAnswers(ctx context.Context) error {
	m, err := p.manifest(apiserverPod)
	if err != nil {
		return err
	}
	address, err := p.Address()
	if err != nil {
		return err
	}
	file := firstOf(m.flag("tls-cert-file"), "/etc/kubernetes/pki/apiserver.crt")
	if err := p.serves(ctx, address, file, nil); err != nil {
		return err
	}
	return p.Livez(ctx)
}

// etcdAnswers asks as its own health check does.
func (p Pods) etcdAnswers(ctx context.Context) error {
	m, err := p.manifest("etcd")
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(m.flag("listen-client-urls"), ",")
	at, err := url.Parse(first)
	if err != nil || at.Host == "" {
		return fmt.Errorf("etcd's manifest names no address for clients (listen-client-urls %q)", first)
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // compared with the file on disk, byte by byte
	pair, err := tls.LoadX509KeyPair(p.path("/etc/kubernetes/pki/etcd/healthcheck-client.crt"), p.path("/etc/kubernetes/pki/etcd/healthcheck-client.key"))
	if err == nil {
		config.Certificates = []tls.Certificate{pair}
	}
	if at.Scheme == "https" {
		if err := p.serves(ctx, at.Host, firstOf(m.flag("cert-file"), "/etc/kubernetes/pki/etcd/server.crt"), config.Certificates); err != nil {
			return err
		}
	}
	return healthy(ctx, at.Scheme+"://"+at.Host+"/health", config)
}

func (p Pods) healthz(ctx context.Context, component, port string) error {
	m, err := p.manifest(component)
	if err != nil {
		return err
	}
	address := net.JoinHostPort(firstOf(m.flag("bind-address"), "127.0.0.1"), firstOf(m.flag("secure-port"), port))
	// Nobody else than this host listens there, and its certificate is of its own making.
	return healthy(ctx, "https://"+address+"/healthz", &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // see above
}

// serves says that what listens at an address has loaded the certificate of a file.
func (p Pods) serves(ctx context.Context, address, file string, client []tls.Certificate) error {
	want, err := leaf(p.path(file))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: client, MinVersion: tls.VersionTLS12}} //nolint:gosec // compared with the file on disk, byte by byte
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("asking %s for its certificate: %w", address, err)
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	state := conn.(*tls.Conn).ConnectionState()
	if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, want) {
		return fmt.Errorf("%s serves another certificate than the one in %s", address, file)
	}
	return nil
}

// leaf is the first certificate of a file.
func leaf(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return nil, fmt.Errorf("reading the certificate %s: no certificate in it", path)
		}
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
}

func healthy(ctx context.Context, address string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, Proxy: nil} // never through a proxy: it is this host
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(answer.Body, 512))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(address + " answers " + answer.Status + ": " + strings.TrimSpace(string(body)))
	}
	return nil
}
