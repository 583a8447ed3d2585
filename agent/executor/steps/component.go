package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// KubeletUnit is the unit of the kubelet.
const KubeletUnit = "kubelet.service"

// component is what Refit knows of a unit: how to see that it works, and what it runs.
type component int

const (
	otherUnit component = iota
	kubelet
	containerRuntime
	etcdMember
)

func componentOf(unit string) component {
	switch strings.TrimSuffix(unit, ".service") {
	case "kubelet":
		return kubelet
	case "containerd", "crio", "cri-o":
		return containerRuntime
	case "etcd":
		return etcdMember
	}
	return otherUnit
}

// works says that the component behind a unit is up and answers.
func works(ctx context.Context, h *Host, unit string) error {
	active, err := h.Units.Active(ctx, unit)
	if err != nil {
		return fmt.Errorf("looking at %s: %w", unit, err)
	}
	if !active {
		return fail("UnitNotActive", "%s is not active; `systemctl status %s` and `journalctl -u %s` say why", unit, unit, unit)
	}
	if componentOf(unit) == kubelet {
		if err := h.Kubelet.Healthz(ctx); err != nil {
			return fail("KubeletUnhealthy", "the kubelet does not answer /healthz with ok: %v", err)
		}
	}
	return nil
}

// runs says that the component behind a unit is of the expected version.
func runs(ctx context.Context, h *Host, unit string, want upgrade.Expectation) error {
	switch componentOf(unit) {
	case kubelet:
		return kubeletRuns(ctx, h, want.Kubelet)
	case containerRuntime:
		return runtimeRuns(ctx, h, want.RuntimeName, want.Runtime)
	case etcdMember:
		return etcdRuns(ctx, h, want.Etcd)
	}
	return nil
}

func kubeletRuns(ctx context.Context, h *Host, want string) error {
	if want == "" {
		return nil
	}
	got, err := h.Kubelet.Version(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of the running kubelet: %w", err)
	}
	if !upgrade.SameKubernetes(got, want) {
		return fail("KubeletVersionMismatch", "the kubelet that runs is %s, wanted %s", got, want)
	}
	return nil
}

func runtimeRuns(ctx context.Context, h *Host, wantName, want string) error {
	if want == "" && wantName == "" {
		return nil
	}
	name, got, err := h.Runtime.Version(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of the running container runtime: %w", err)
	}
	if wantName != "" && name != wantName {
		return fail("RuntimeNameMismatch", "the container runtime that answers is %s, wanted %s", name, wantName)
	}
	if want != "" && !upgrade.SameRuntime(got, want) {
		return fail("RuntimeVersionMismatch", "the %s that runs is %s, wanted %s", name, got, want)
	}
	return nil
}

func controlPlaneRuns(ctx context.Context, h *Host, want string) error {
	if want == "" {
		return nil
	}
	got, err := h.ControlPlane.Version(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of this host's API server: %w", err)
	}
	if !upgrade.SameKubernetes(got, want) {
		return fail("ControlPlaneVersionMismatch", "this host's API server runs %s, wanted %s", got, want)
	}
	if err := h.ControlPlane.Livez(ctx); err != nil {
		return fail("ControlPlaneUnhealthy", "this host's API server does not answer /livez with ok: %v", err)
	}
	return nil
}

// IsEtcd says whether a unit is that of a member of etcd.
func IsEtcd(unit string) bool { return componentOf(unit) == etcdMember }

// IsRuntime says whether a unit is that of a container runtime.
func IsRuntime(unit string) bool { return componentOf(unit) == containerRuntime }
