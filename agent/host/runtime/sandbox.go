package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// stopGrace is what a container gets between SIGTERM and SIGKILL, in seconds.
	stopGrace = 30
	// stopRounds bounds how often sandboxes that came back are stopped again.
	stopRounds = 3
	probeLabel = "refit.dev/probe"
)

// Sandboxes are the ids of the pod sandboxes that run.
func (r *Runtime) Sandboxes(ctx context.Context) ([]string, error) {
	return r.sandboxes(ctx, &runtimev1.PodSandboxFilter{
		State: &runtimev1.PodSandboxStateValue{State: runtimev1.PodSandboxState_SANDBOX_READY},
	})
}

func (r *Runtime) sandboxes(ctx context.Context, filter *runtimev1.PodSandboxFilter) ([]string, error) {
	answer, err := ask(ctx, r, "listing pod sandboxes", runtimev1.RuntimeServiceClient.ListPodSandbox, &runtimev1.ListPodSandboxRequest{Filter: filter})
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(answer.Items))
	for _, item := range answer.Items {
		ids = append(ids, item.Id)
	}
	return ids, nil
}

// StopSandboxes stops every pod sandbox that is left on the host, static pods and
// those of DaemonSets too, so that no shim of the old runtime meets the new daemon.
// It returns how many it stopped. The kubelet must be stopped before: it would
// start them again.
func (r *Runtime) StopSandboxes(ctx context.Context) (int, error) {
	stopped := 0
	for range stopRounds {
		ids, err := r.Sandboxes(ctx)
		if err != nil {
			return stopped, err
		}
		if len(ids) == 0 {
			return stopped, r.noneRuns(ctx)
		}
		for _, id := range ids {
			if err := r.stop(ctx, id); err != nil {
				return stopped, err
			}
			stopped++
		}
	}
	return stopped, fmt.Errorf("stopping pod sandboxes at %s: new ones appeared %d times in a row; is the kubelet still running?", r.Endpoint, stopRounds)
}

// stop ends the containers of a sandbox gracefully, then the sandbox.
func (r *Runtime) stop(ctx context.Context, sandbox string) error {
	answer, err := ask(ctx, r, "listing the containers of a sandbox", runtimev1.RuntimeServiceClient.ListContainers, &runtimev1.ListContainersRequest{
		Filter: &runtimev1.ContainerFilter{PodSandboxId: sandbox, State: &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}},
	})
	if err != nil {
		return err
	}
	for _, c := range answer.Containers {
		if err := r.StopContainer(ctx, c.Id); err != nil {
			return err
		}
	}
	if _, err := ask(ctx, r, "stopping a pod sandbox", runtimev1.RuntimeServiceClient.StopPodSandbox, &runtimev1.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		return fmt.Errorf("sandbox %s: %w", sandbox, err)
	}
	return nil
}

// StopContainer ends a container: SIGTERM, and SIGKILL after a grace period. It is not
// bound by callTimeout, since the answer comes after that.
func (r *Runtime) StopContainer(ctx context.Context, id string) error {
	client, err := r.cri()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace*time.Second+callTimeout)
	defer cancel()
	if _, err := client.StopContainer(ctx, &runtimev1.StopContainerRequest{ContainerId: id, Timeout: stopGrace}); err != nil {
		return fmt.Errorf("stopping container %s: %w", id, err)
	}
	return nil
}

func (r *Runtime) noneRuns(ctx context.Context) error {
	containers, err := r.Containers(ctx)
	if err != nil {
		return err
	}
	if len(containers) > 0 {
		return fmt.Errorf("stopping pod sandboxes at %s: %d containers still run, first %s/%s", r.Endpoint, len(containers), containers[0].Namespace, containers[0].Name)
	}
	return nil
}

// ProbeSandbox starts a real sandbox in the host's network and removes it. A node
// can be Ready and yet start none: wrong cgroup driver, missing sandbox image, old shim.
func (r *Runtime) ProbeSandbox(ctx context.Context) (err error) {
	if err := r.removeProbes(ctx); err != nil { // left by a probe that was cut off
		return err
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		err = errors.Join(err, r.removeProbes(cleanup))
	}()
	config, err := r.probeConfig(ctx)
	if err != nil {
		return err
	}
	answer, err := ask(ctx, r, "starting a probe sandbox", runtimev1.RuntimeServiceClient.RunPodSandbox, &runtimev1.RunPodSandboxRequest{Config: config})
	if err != nil {
		return err
	}
	status, err := ask(ctx, r, "looking at the probe sandbox", runtimev1.RuntimeServiceClient.PodSandboxStatus, &runtimev1.PodSandboxStatusRequest{PodSandboxId: answer.PodSandboxId})
	if err != nil {
		return err
	}
	if state := status.GetStatus().GetState(); state != runtimev1.PodSandboxState_SANDBOX_READY {
		return fmt.Errorf("starting a probe sandbox at %s: it is %s right after its start", r.Endpoint, state)
	}
	return nil
}

func (r *Runtime) probeConfig(ctx context.Context) (*runtimev1.PodSandboxConfig, error) {
	driver := r.CgroupDriver
	if driver == "" {
		info, err := r.Info(ctx)
		if err != nil {
			return nil, err
		}
		driver = info.CgroupDriver
	}
	parent := "/refit-probe"
	if driver == "systemd" {
		parent = "system.slice" // this driver takes the name of a slice, not a path
	}
	return &runtimev1.PodSandboxConfig{
		Metadata: &runtimev1.PodSandboxMetadata{Name: "refit-probe", Namespace: "refit-probe", Uid: string(uuid.NewUUID())},
		Labels:   map[string]string{probeLabel: "true"},
		Linux: &runtimev1.LinuxPodSandboxConfig{
			CgroupParent: parent,
			SecurityContext: &runtimev1.LinuxSandboxSecurityContext{
				NamespaceOptions: &runtimev1.NamespaceOption{Network: runtimev1.NamespaceMode_NODE},
			},
		},
	}, nil
}

func (r *Runtime) removeProbes(ctx context.Context) error {
	ids, err := r.sandboxes(ctx, &runtimev1.PodSandboxFilter{LabelSelector: map[string]string{probeLabel: "true"}})
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, stop := ask(ctx, r, "stopping a probe sandbox", runtimev1.RuntimeServiceClient.StopPodSandbox, &runtimev1.StopPodSandboxRequest{PodSandboxId: id})
		_, remove := ask(ctx, r, "removing a probe sandbox", runtimev1.RuntimeServiceClient.RemovePodSandbox, &runtimev1.RemovePodSandboxRequest{PodSandboxId: id})
		if err := errors.Join(stop, remove); err != nil {
			return err
		}
	}
	return nil
}
