package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const startTimeout = 2 * time.Minute

// Server is a running etcd and kube-apiserver.
type Server struct {
	dir  string
	bin  binaries
	ca   *authority
	port int

	auditPolicy []byte // nil: no audit log

	etcdURL string
	etcd    *process
	api     *process
	admin   *rest.Config
}

// Processes are the ids of the API server's and etcd's, for whoever asks what they have used.
func (s *Server) Processes() (apiserver, etcd int) {
	return s.api.cmd.Process.Pid, s.etcd.cmd.Process.Pid
}

// Option changes how a server starts.
type Option func(*Server)

// WithAudit writes an audit log under the policy, each event before its request is answered.
func WithAudit(policy []byte) Option { return func(s *Server) { s.auditPolicy = policy } }

// Start starts a server with the CRDs installed, for as long as the test runs.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	srv := StartShared(t, options...)
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Errorf("stopping the Kubernetes API server: %v", err)
		}
	})
	return srv
}

// StartShared starts a server that outlives the test: the package's TestMain stops it.
func StartShared(t testing.TB, options ...Option) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	srv, err := Launch(ctx, options...)
	if errors.Is(err, ErrNoBinaries) && os.Getenv(envRequire) == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("starting a Kubernetes API server: %v", err)
	}
	return srv
}

// Launch is Start for a TestMain, or for a program; the caller stops the server.
func Launch(ctx context.Context, options ...Option) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "refit-apiserver-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the API server: %w", err)
	}
	srv := &Server{dir: dir, bin: bin}
	for _, o := range options {
		o(srv)
	}
	if err := srv.launch(ctx); err != nil {
		return nil, errors.Join(err, srv.Stop())
	}
	return srv, nil
}

func (s *Server) launch(ctx context.Context) (err error) {
	if s.ca, err = newAuthority(); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.startEtcd(ctx); err != nil {
		return err
	}
	if err := s.writeCredentials(); err != nil {
		return err
	}
	if s.admin, err = s.config("kubernetes-admin", "system:masters"); err != nil {
		return err
	}
	if err := s.StartAPI(ctx); err != nil {
		return err
	}
	return s.InstallCRDs(ctx)
}

func (s *Server) startEtcd(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.etcdURL = "http://127.0.0.1:" + strconv.Itoa(port)
	s.etcd, err = startProcess(s.path("etcd.log"), s.bin.etcd,
		"--data-dir", s.path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", s.etcdURL, "--advertise-client-urls", s.etcdURL,
		"--listen-peer-urls", "http://127.0.0.1:0")
	if err != nil {
		return err
	}
	return s.etcd.await(ctx, func(ctx context.Context) error { return getOK(ctx, s.etcdURL+"/readyz") })
}

func (s *Server) writeCredentials() error {
	pair, err := s.ca.server()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"ca.crt": s.ca.pem, "server.crt": pair.Cert, "server.key": pair.Key} {
		if _, err := writeFile(s.dir, name, content); err != nil {
			return err
		}
	}
	_, err = serviceAccountKey(s.dir)
	return err
}

// StartAPI starts the API server again after StopAPI or KillAPI, at the same address and with the same data.
func (s *Server) StartAPI(ctx context.Context) (err error) {
	audit, err := s.auditFlags()
	if err != nil {
		return err
	}
	s.api, err = startProcess(s.path("kube-apiserver.log"), s.bin.apiserver, append(audit,
		"--etcd-servers", s.etcdURL,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(s.port),
		"--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.0.0.0/24",
		"--tls-cert-file", s.path("server.crt"), "--tls-private-key-file", s.path("server.key"),
		"--client-ca-file", s.path("ca.crt"), "--allow-privileged",
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", s.path("service-account.key"),
		"--service-account-signing-key-file", s.path("service-account.key"))...)
	if err != nil {
		return err
	}
	return s.api.await(ctx, s.ready)
}

func (s *Server) auditFlags() ([]string, error) {
	if s.auditPolicy == nil {
		return nil, nil
	}
	policy, err := writeFile(s.dir, "audit-policy.yaml", s.auditPolicy)
	if err != nil {
		return nil, err
	}
	return []string{"--audit-policy-file", policy, "--audit-log-path", s.AuditLog(), "--audit-log-mode", "blocking"}, nil
}

// AuditLog is the file of WithAudit.
func (s *Server) AuditLog() string { return s.path("audit.log") }

// Kubectl is the path of the kubectl of the same release; the test is skipped where there is none.
func (s *Server) Kubectl(t testing.TB) string {
	t.Helper()
	program := filepath.Join(filepath.Dir(s.bin.apiserver), "kubectl")
	if _, err := os.Stat(program); err != nil {
		missing(t, fmt.Errorf("%w: %w", ErrNoBinaries, err))
	}
	return program
}

// StopAPI stops the API server as an administrator would; clients see their watches end.
func (s *Server) StopAPI() error { return s.api.stop() }

// KillAPI is the crash of the API server.
func (s *Server) KillAPI() error { return s.api.kill() }

// Stop ends both programs and removes their files.
func (s *Server) Stop() error {
	return errors.Join(s.api.kill(), s.etcd.kill(), os.RemoveAll(s.dir))
}

func (s *Server) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.admin)
	if err != nil {
		return fmt.Errorf("making an admin client: %w", err)
	}
	defer client.CloseIdleConnections()
	return getOKWith(ctx, client, s.URL()+"/readyz")
}

// URL of the API server.
func (s *Server) URL() string { return "https://127.0.0.1:" + strconv.Itoa(s.port) }

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

func getOK(ctx context.Context, url string) error { return getOKWith(ctx, http.DefaultClient, url) }

func getOKWith(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("preparing GET %s: %w", url, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("getting %s: %w", url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("getting %s: %s", url, resp.Status)
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
