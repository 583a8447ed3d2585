package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/test/audit"
	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/integration/apiserver"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	server  *apiserver.Server
	program string
	cli     string
)

// TestMain starts one API server with the shipped manifests, and builds the program.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		dir, err := os.MkdirTemp("", "refit-coordinator-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := prepare(ctx, dir); errors.Is(err, apiserver.ErrNoBinaries) && os.Getenv("REFIT_REQUIRE_API") == "" {
			fmt.Fprintln(os.Stderr, "skipped:", err)
			return 0
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = server.Stop() }()
		return max(m.Run(), observe())
	}())
}

// observe judges what all tests together made the coordinator do, by the API server's own log.
func observe() int {
	log, err := audit.Load(server.AuditLog())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	verdict := log.Judge(audit.Rules{Drainers: []string{coordinatorUser}})
	for _, v := range verdict.Violations {
		fmt.Fprintln(os.Stderr, "the audit log shows:", v)
	}
	return min(len(verdict.Violations), 1)
}

func prepare(ctx context.Context, dir string) error {
	var err error
	if server, err = apiserver.Launch(ctx, apiserver.WithAudit(audit.Bodies)); err != nil {
		return err
	}
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	deploy := filepath.Join(root, "deploy")
	files := []string{"coordinator/namespaces.yaml", "coordinator/rbac/role.yaml", "coordinator/rbac/bindings.yaml", "policy/agent.yaml", "policy/coordinator.yaml",
		"policy/access.yaml", "policy/token.yaml"}
	for _, f := range files {
		if err := server.ApplyFiles(ctx, filepath.Join(deploy, f)); err != nil {
			return errors.Join(err, server.Stop())
		}
	}
	if err := server.Apply(ctx, []byte(defaultAccount)); err != nil {
		return errors.Join(err, server.Stop())
	}
	program, cli = filepath.Join(dir, "refit-coordinator"), filepath.Join(dir, "kubectl-refit")
	build := exec.CommandContext(ctx, "go", "build", "-o", dir, "./cmd/refit-coordinator", "./cmd/kubectl-refit")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("building the programs: %w: %s", err, out), server.Stop())
	}
	return nil
}

// Without a controller manager nothing makes the account that pods run under.
const defaultAccount = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: default}, automountServiceAccountToken: false}"
