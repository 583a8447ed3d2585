package hostfake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

type units struct{ h *Host }

func (u units) Restart(_ context.Context, unit string) error {
	return u.h.call("restart "+unit, func() error { return u.up(unit) })
}

func (u units) Start(_ context.Context, unit string) error {
	return u.h.call("start "+unit, func() error {
		if u.h.Active[unit] {
			return nil
		}
		return u.up(unit)
	})
}

func (u units) up(unit string) error {
	u.h.start(unit)
	if u.h.Down[unit] {
		return fmt.Errorf("job of %s failed", unit)
	}
	return nil
}

func (u units) Stop(_ context.Context, unit string) error {
	return u.h.call("stop "+unit, func() error { u.h.Active[unit] = false; return nil })
}

func (u units) Reload(context.Context) error { return u.h.call("reload", func() error { return nil }) }

func (u units) Active(_ context.Context, unit string) (active bool, err error) {
	err = u.h.call("active "+unit, func() error { active = u.h.Active[unit]; return nil })
	return active, err
}

type runtime struct{ h *Host }

func (r runtime) Version(context.Context) (name, version string, err error) {
	err = r.h.call("runtime version", func() error {
		name, version = "containerd", r.h.State.Runtime
		return r.up()
	})
	return name, version, err
}

func (r runtime) up() error {
	if !r.h.Active["containerd.service"] {
		return errors.New("containerd.sock: connection refused")
	}
	return nil
}

func (r runtime) WaitReady(context.Context, time.Duration) error {
	return r.h.call("runtime ready", r.up)
}

// A kubelet that runs starts pods again as fast as they are stopped.
func (r runtime) StopSandboxes(context.Context) (stopped int, err error) {
	err = r.h.call("stop sandboxes", func() error {
		stopped = r.h.Sandboxes
		r.h.Sandboxes, r.h.SandboxRuntime, r.h.Pods = 0, "", map[string]string{}
		r.h.startPods()
		return r.up()
	})
	return stopped, err
}

// A daemon cannot serve sandboxes that another minor started.
func (r runtime) ProbeSandbox(context.Context) error {
	return r.h.call("probe sandbox", func() error {
		if s := r.h.SandboxRuntime; s != "" && minor(s) != minor(r.h.State.Runtime) {
			return fmt.Errorf("shim of %s does not speak to containerd %s", s, r.h.State.Runtime)
		}
		return r.up()
	})
}

func (r runtime) Pull(_ context.Context, image string) error {
	return r.h.call("pull "+image, func() error { return nil })
}

type kubelet struct{ h *Host }

func (k kubelet) Version(context.Context) (version string, err error) {
	err = k.h.call("kubelet version", func() error { version = k.h.State.Kubelet; return k.up() })
	return version, err
}

func (k kubelet) Healthz(context.Context) error { return k.h.call("kubelet healthz", k.up) }

func (k kubelet) up() error {
	if !k.h.Active["kubelet.service"] {
		return errors.New("kubelet: connection refused")
	}
	return nil
}

type controlPlane struct{ h *Host }

func (c controlPlane) Version(context.Context) (version string, err error) {
	err = c.h.call("api server version", func() error { version = c.h.Pods["kube-apiserver"]; return c.up() })
	return version, err
}

func (c controlPlane) Livez(context.Context) error { return c.h.call("api server livez", c.up) }

func (c controlPlane) up() error {
	if c.h.Pods["kube-apiserver"] == "" {
		return errors.New("api server: connection refused")
	}
	return nil
}

type kubeadm struct{ h *Host }

// Upgrade moves one component after the other, then writes the kubelet's configuration.
func (k kubeadm) Upgrade(_ context.Context, u upgrade.KubeadmUpgrade) error {
	if u.ControlPlane {
		k.h.mu.Lock()
		k.h.State.Unfinished = &upgrade.UnfinishedFacts{Version: u.Version, Role: u.Role}
		k.h.saved()
		k.h.mu.Unlock()
	}
	return k.h.call("kubeadm upgrade "+u.Version, func() error {
		if have := "v" + k.h.onDisk("kubeadm"); have != u.Version {
			return fmt.Errorf("kubeadm is %s and cannot upgrade to %s", have, u.Version)
		}
		if u.ControlPlane {
			if len(k.h.Pods) == 0 {
				return errors.New("kubeadm: no control plane answers")
			}
			for _, c := range components {
				k.h.Manifests[c], k.h.Pods[c] = u.Version, u.Version
				k.h.amid("kubeadm upgrade at " + c)
			}
		}
		k.h.Files["/var/lib/kubelet/config.yaml"] = File{"version: " + u.Version[1:] + "\n", 0o644}
		k.h.Effects["kubeadm "+u.Version]++
		k.h.State.Unfinished = nil
		return nil
	})
}

func (k kubeadm) Unfinished(context.Context) (run *upgrade.UnfinishedFacts, err error) {
	err = k.h.call("kubeadm unfinished", func() error { run = k.h.State.Unfinished; return nil })
	return run, err
}

type hooks struct{ h *Host }

func (k hooks) Run(_ context.Context, name string, env []string) (output string, err error) {
	err = k.h.call("hook "+name, func() error {
		k.h.Effects["hook "+name]++
		output = strings.Join(env, " ")
		return nil
	})
	return output, err
}

type boot struct{ h *Host }

func (b boot) ID(context.Context) (id string, err error) {
	err = b.h.call("boot id", func() error { id = b.h.BootID; return nil })
	return id, err
}

// Reboot ends the process that asked for it, as a real one does.
func (b boot) Reboot(context.Context) error {
	return b.h.call("reboot", func() error {
		if b.h.RebootIgnored {
			return nil
		}
		b.h.Effects["reboot"]++
		b.h.restart()
		b.h.saved()
		b.h.mu.Unlock()
		panic(Crash{"rebooting"})
	})
}
