package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/integration/apiserver"
	"io/fs"
	"sigs.k8s.io/yaml"
)

var (
	server  *apiserver.Server
	program string // refit-coordinator
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		dir, err := os.MkdirTemp("", "refit-access-")
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
		return m.Run()
	}())
}

// prepare installs all that is shipped, as kubectl refit install --agent daemonset does.
func prepare(ctx context.Context, dir string) error {
	var err error
	if server, err = apiserver.Launch(ctx); err != nil {
		return err
	}
	for _, files := range []fs.FS{deploy.Manifests, deploy.DaemonSet} {
		objects, err := install.Load(files)
		if err != nil {
			return errors.Join(err, server.Stop())
		}
		for _, o := range objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return errors.Join(err, server.Stop())
			}
			if err := server.Apply(ctx, text); err != nil {
				return errors.Join(err, server.Stop())
			}
		}
	}
	root, err := checkout.Root()
	if err != nil {
		return errors.Join(err, server.Stop())
	}
	program = filepath.Join(dir, "refit-coordinator")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/refit-coordinator")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("building the coordinator: %w: %s", err, out), server.Stop())
	}
	return nil
}
