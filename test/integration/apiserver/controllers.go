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
	program := filepath.Join(filepath.Dir(s.bin.apiserver), "kube-controller-manager")
	if _, err := os.Stat(program); err != nil {
		missing(t, fmt.Errorf("%w: %w", ErrNoBinaries, err))
	}
	kubeconfig := s.WriteKubeconfig(t, t.TempDir(), "kubernetes-admin", "system:masters")
	p, err := startProcess(s.path("kube-controller-manager.log"), program,
		"--kubeconfig", kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers", strings.Join(names, ","))
	if err != nil {
		t.Fatalf("starting the controller manager: %v", err)
	}
	t.Cleanup(func() {
		if err := p.kill(); err != nil {
			t.Errorf("stopping the controller manager: %v", err)
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
