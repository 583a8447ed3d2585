package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// StaticPod says whether a plan may restart a component.
func StaticPod(component string) bool { return slices.Contains(upgrade.ControlPlanePods(), component) }

// restartStaticPod ends the container of a component and waits for the one that the
// kubelet starts instead. The manifest stays where it is, so that a crash at any point
// leaves a host whose kubelet brings the component back by itself.
func restartStaticPod(ctx context.Context, r Run) (string, error) {
	component := r.Step.Pod
	before, err := r.Host.StaticPods.Container(ctx, component)
	if err != nil {
		return "", fmt.Errorf("looking for the container of %s: %w", component, err)
	}
	if before != "" { // one that is down is being started by the kubelet, with what is on disk
		if err := r.Host.StaticPods.Stop(ctx, before); err != nil {
			return "", fmt.Errorf("ending the container of %s: %w", component, err)
		}
	}
	return "", await(ctx, r.Poll, func(ctx context.Context) error {
		now, err := r.Host.StaticPods.Container(ctx, component)
		switch {
		case err != nil:
			return fmt.Errorf("looking for the container of %s: %w", component, err)
		case now == "" || now == before:
			return fail("StaticPodNotRunning", "the kubelet has not started %s again; see its log (crictl ps -a --name %s) and journalctl -u kubelet", component, component)
		}
		if err := r.Host.StaticPods.Answers(ctx, component); err != nil {
			return fail("StaticPodUnhealthy", "%s runs and is not well: %v", component, err)
		}
		return nil
	})
}
