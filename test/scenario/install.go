package scenario

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/refit-dev/refit/test/fleet/testfleet"
	"github.com/refit-dev/refit/test/image"
)

// CoordinatorImage is the coordinator's image as the hosts name it.
const CoordinatorImage = "registry.fleet.test/refit-coordinator:dev"

// AgentImage is the agent's image as the hosts name it.
const AgentImage = "registry.fleet.test/refit-agent:dev"

// AsDaemonSet says in which form the agents run: REFIT_AGENT=daemonset makes them pods, else they are units.
func AsDaemonSet() bool { return os.Getenv("REFIT_AGENT") == "daemonset" }

// Install installs Refit: the coordinator into the cluster, agent and executor on every host, as units or as pods.
func (e *Env) Install(ctx context.Context) error {
	img, err := image.FromBinary(filepath.Join(e.Bin, "refit-coordinator"), "/refit-coordinator")
	if err != nil {
		return err
	}
	if err := e.Push(img, CoordinatorImage); err != nil {
		return err
	}
	if AsDaemonSet() {
		return e.installPods(ctx)
	}
	if _, err := e.Refit(ctx, "install", "--coordinator-image", CoordinatorImage); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, h := range e.Fleet.Hosts() {
		g.Go(func() error { return e.InstallAgent(ctx, h) })
	}
	return g.Wait()
}

// installPods has the pods install the executor, and puts refit-agent on the hosts beside it for the steps of the
// scenario that ask a host itself; no agent is started from there.
func (e *Env) installPods(ctx context.Context) error {
	img, err := image.FromFiles(runtime.GOARCH, "0:0",
		image.File{Source: filepath.Join(e.Bin, "refit-agent"), Path: "/refit-agent"},
		image.File{Source: filepath.Join(e.Bin, "refit-executor"), Path: "/refit-executor"})
	if err != nil {
		return err
	}
	if err := e.Push(img, AgentImage); err != nil {
		return err
	}
	if _, err := e.Refit(ctx, "install", "--coordinator-image", CoordinatorImage, "--agent", "daemonset", "--agent-image", AgentImage); err != nil {
		return err
	}
	for _, h := range e.Fleet.Hosts() {
		if err := h.CopyIn(ctx, filepath.Join(e.Bin, "refit-agent"), "/usr/local/bin/refit-agent", 0o755); err != nil {
			return fmt.Errorf("copying refit-agent to %s: %w", h.Name(), err)
		}
	}
	return nil
}

// Push uploads an image to the fleet's registry under the name that the hosts use.
func (e *Env) Push(img v1.Image, ref string) error {
	registry := strings.TrimPrefix(e.Fleet.RegistryURL(), "http://")
	_, rest, _ := strings.Cut(ref, "/")
	target, err := name.ParseReference(registry+"/"+rest, name.Insecure)
	if err != nil {
		return fmt.Errorf("naming image %s: %w", ref, err)
	}
	if err := remote.Write(target, img); err != nil {
		return fmt.Errorf("pushing image %s: %w", ref, err)
	}
	return nil
}

// InstallAgent puts agent, executor and their units on one host and starts the agent.
func (e *Env) InstallAgent(ctx context.Context, h *testfleet.Host) error {
	files := []struct {
		src, dst string
		mode     os.FileMode
	}{
		{filepath.Join(e.Bin, "refit-agent"), "/usr/bin/refit-agent", 0o755},
		{filepath.Join(e.Bin, "refit-executor"), "/usr/bin/refit-executor", 0o755},
		{filepath.Join(e.Root, "deploy/systemd/refit-agent.service"), "/etc/systemd/system/refit-agent.service", 0o644},
		{filepath.Join(e.Root, "deploy/systemd/refit-resume.service"), "/etc/systemd/system/refit-resume.service", 0o644},
		{filepath.Join(e.Root, "deploy/systemd/agent.yaml"), "/etc/refit/agent.yaml", 0o644},
	}
	for _, f := range files {
		if err := h.CopyIn(ctx, f.src, f.dst, f.mode); err != nil {
			return fmt.Errorf("copying %s to %s: %w", f.dst, h.Name(), err)
		}
	}
	for _, argv := range [][]string{
		{"systemctl", "daemon-reload"},
		{"systemctl", "enable", "refit-resume.service"},
		{"systemctl", "enable", "--now", "refit-agent.service"},
	} {
		if _, err := h.Exec(ctx, nil, argv...); err != nil {
			return fmt.Errorf("on %s: %w", h.Name(), err)
		}
	}
	return nil
}

// Refit runs kubectl-refit against the fleet as its administrator.
func (e *Env) Refit(ctx context.Context, args ...string) (string, error) {
	return e.run(ctx, filepath.Join(e.Bin, "kubectl-refit"), args...)
}

// Kubectl runs kubectl against the fleet as its administrator.
func (e *Env) Kubectl(ctx context.Context, args ...string) (string, error) {
	return e.run(ctx, e.Fleet.Kubectl(), args...)
}

func (e *Env) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Fleet.Kubeconfig())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running %s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}
