package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartControllers runs the real kube-controller-manager with only the named
// controllers, such as disruption-controller, for as long as the test runs.
func (s *Server) StartControllers(t testing.TB, names ...string) {
	t.Helper()
	s.startComponent(t, "kube-controller-manager", "--secure-port=0", "--controllers", strings.Join(names, ","))
}

// StartScheduler runs the real kube-scheduler, as it is by default, for as long as the test runs.
func (s *Server) StartScheduler(t testing.TB) {
	t.Helper()
	s.startComponent(t, "kube-scheduler", "--secure-port=0")
}

// startComponent runs a program of the server's release, as administrator.
func (s *Server) startComponent(t testing.TB, name string, args ...string) {
	t.Helper()
	program := filepath.Join(filepath.Dir(s.bin.apiserver), name)
	if _, err := os.Stat(program); err != nil {
		missing(t, fmt.Errorf("%w: %w", ErrNoBinaries, err))
	}
	kubeconfig := s.WriteKubeconfig(t, t.TempDir(), "kubernetes-admin", "system:masters")
	p, err := startProcess(s.path(name+".log"), program, append([]string{"--kubeconfig", kubeconfig, "--leader-elect=false"}, args...)...)
	if err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := p.kill(); err != nil {
			t.Errorf("stopping %s: %v", name, err)
		}
	})
}

// missing skips the test, unless programs are required.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(envRequire) != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}
