package facts

import (
	"context"
	"fmt"
	"strings"

	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/runtime"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// runtimeUnits by what the runtime calls itself.
var runtimeUnits = map[string]string{"containerd": "containerd.service", "cri-o": "crio.service"}

func (g *gathering) runtime(ctx context.Context) error {
	endpoint, err := g.endpoint()
	if err != nil || endpoint == "" {
		return err
	}
	r := &upgrade.RuntimeFacts{Endpoint: endpoint}
	g.facts.Runtime = r
	g.client = g.Runtime(endpoint)
	r.Name, r.Running, err = g.client.Version(ctx)
	g.problem("containerRuntime.running", err)
	if err != nil {
		r.Name = nameByEndpoint(endpoint)
	}
	info, err := g.client.Info(ctx)
	g.problem("containerRuntime.ready", err)
	r.Ready, r.CgroupDriver, r.SandboxImage = info.Ready, info.CgroupDriver, info.SandboxImage
	sandboxes, err := g.client.Sandboxes(ctx)
	g.problem("containerRuntime.sandboxes", err)
	r.Sandboxes = len(sandboxes)
	return g.installedRuntime(ctx, r)
}

// endpoint is that of the running kubelet when its flags say, else what its files say.
func (g *gathering) endpoint() (string, error) {
	if k := g.facts.Kubelet; k != nil {
		for i, flag := range k.Flags {
			if value, ok := strings.CutPrefix(flag, "--container-runtime-endpoint="); ok {
				return runtime.Normalize(value), nil
			}
			if flag == "--container-runtime-endpoint" && i+1 < len(k.Flags) {
				return runtime.Normalize(k.Flags[i+1]), nil
			}
		}
	}
	return runtime.Detect(g.Root)
}

func nameByEndpoint(endpoint string) string {
	if strings.Contains(endpoint, "crio") {
		return "cri-o"
	}
	if strings.Contains(endpoint, "containerd") {
		return "containerd"
	}
	return ""
}

// installedRuntime is the version of the program that a restart would run.
func (g *gathering) installedRuntime(ctx context.Context, r *upgrade.RuntimeFacts) error {
	unit := runtimeUnits[r.Name]
	if unit == "" {
		return nil
	}
	status, err := g.Units.Status(ctx, unit)
	if err != nil {
		return fmt.Errorf("looking for the container runtime: %w", err)
	}
	program := command.Find(strings.TrimSuffix(unit, ".service"))
	if status.Exists() {
		r.Unit = unit
		r.Stopped = r.Running == "" && status.MainPID == 0 && status.ActiveState != "active"
	}
	if status.MainPID != 0 {
		if path, err := programOf(status.MainPID); err == nil {
			program = path
		}
	}
	if program == "" {
		return nil
	}
	result, err := g.Runner.Run(ctx, command.Command{Argv: []string{program, "--version"}})
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", program, err)
	}
	r.Installed, err = programVersion(result.Stdout)
	g.problem("containerRuntime.installed", err)
	g.problem("containerRuntime.configuration", g.containerdConfig(ctx, program, status.MainPID, r))
	return nil
}

// programVersion finds the version in what a runtime prints: the first word that
// starts like one. Its meaning is decided elsewhere; the text is kept as it is.
func programVersion(output string) (string, error) {
	for word := range strings.FieldsSeq(output) {
		digits := strings.TrimPrefix(word, "v")
		if len(digits) > 2 && digits[0] >= '0' && digits[0] <= '9' && strings.Contains(digits, ".") {
			return word, nil
		}
	}
	return "", fmt.Errorf("asking a program for its version: no version in %q", command.Tail(output, 200))
}

func (g *gathering) listContainers(ctx context.Context) error {
	if g.client == nil {
		return nil
	}
	var err error
	g.containers, err = g.client.Containers(ctx)
	return err
}

// runningImage is the image tag of the newest running container of a name in
// kube-system: right after an upgrade the old one may still be on its way out.
func (g *gathering) runningImage(name string) string {
	var newest runtime.Container
	for _, c := range g.containers {
		if c.Name == name && c.Namespace == "kube-system" && c.CreatedAt > newest.CreatedAt {
			newest = c
		}
	}
	return runtime.Tag(newest.Image)
}
