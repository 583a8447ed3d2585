package runtime

import (
	"context"
	"encoding/json"
	"fmt"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Info is the state and the effective configuration of the runtime.
type Info struct {
	Ready        bool
	Message      string // why it is not ready
	CgroupDriver string // systemd | cgroupfs | "" when the runtime does not say
	SandboxImage string
}

// Info asks the runtime for its state and for what is really in effect.
func (r *Runtime) Info(ctx context.Context) (Info, error) {
	answer, err := ask(ctx, r, "asking for the runtime status", runtimev1.RuntimeServiceClient.Status, &runtimev1.StatusRequest{Verbose: true})
	if err != nil {
		return Info{}, err
	}
	info := infoFrom(answer)
	if driver := r.configuredDriver(ctx); driver != "" {
		info.CgroupDriver = driver
	}
	return info, nil
}

// configuredDriver asks the newer call; runtimes that lack it show the driver in their status.
func (r *Runtime) configuredDriver(ctx context.Context) string {
	answer, err := ask(ctx, r, "asking for the runtime configuration", runtimev1.RuntimeServiceClient.RuntimeConfig, &runtimev1.RuntimeConfigRequest{})
	if err != nil || answer.Linux == nil {
		return ""
	}
	if answer.Linux.CgroupDriver == runtimev1.CgroupDriver_CGROUPFS {
		return "cgroupfs"
	}
	return "systemd"
}

// criConfig is the part of the CRI plugin's configuration that containerd shows in
// its status; the sandbox image moved between 1.x and 2.x.
type criConfig struct {
	SandboxImage string `json:"sandboxImage"`
	PinnedImages struct {
		Sandbox string `json:"sandbox"`
	} `json:"pinnedImages"`
	Containerd struct {
		DefaultRuntimeName string `json:"defaultRuntimeName"`
		Runtimes           map[string]struct {
			Options map[string]any `json:"options"`
		} `json:"runtimes"`
	} `json:"containerd"`
}

func infoFrom(answer *runtimev1.StatusResponse) Info {
	var info Info
	for _, condition := range answer.GetStatus().GetConditions() {
		if condition.Type == runtimev1.RuntimeReady {
			info.Ready = condition.Status
			if !info.Ready {
				info.Message = fmt.Sprintf("%s: %s", condition.Reason, condition.Message)
			}
		}
	}
	var config criConfig
	if json.Unmarshal([]byte(answer.GetInfo()["config"]), &config) != nil {
		return info // not containerd, or a shape we do not know: then it is unknown
	}
	info.SandboxImage = config.SandboxImage
	if config.PinnedImages.Sandbox != "" {
		info.SandboxImage = config.PinnedImages.Sandbox
	}
	info.CgroupDriver = config.driver()
	return info
}

func (c criConfig) driver() string {
	runtime, ok := c.Containerd.Runtimes[c.Containerd.DefaultRuntimeName]
	if !ok {
		return ""
	}
	if systemd, _ := runtime.Options["SystemdCgroup"].(bool); systemd {
		return "systemd"
	}
	return "cgroupfs"
}
