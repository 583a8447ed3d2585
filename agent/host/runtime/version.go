package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/containerd/v2/client"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const containerd = "containerd"

// Version is what the running daemon answers. containerd is asked twice, through the
// CRI and through its own service: two answers that differ are an error, not a choice.
func (r *Runtime) Version(ctx context.Context) (name, version string, err error) {
	answer, err := ask(ctx, r, "asking for the runtime version", runtimev1.RuntimeServiceClient.Version, &runtimev1.VersionRequest{})
	if err != nil {
		return "", "", err
	}
	if answer.RuntimeName != containerd {
		return answer.RuntimeName, answer.RuntimeVersion, nil
	}
	second, err := r.containerdVersion(ctx)
	if err != nil {
		return "", "", err
	}
	if second != answer.RuntimeVersion {
		return "", "", fmt.Errorf("asking for the runtime version at %s: the CRI answers %q and containerd itself %q", r.Endpoint, answer.RuntimeVersion, second)
	}
	return answer.RuntimeName, answer.RuntimeVersion, nil
}

func (r *Runtime) containerdVersion(ctx context.Context) (string, error) {
	conn, err := r.dial()
	if err != nil {
		return "", err
	}
	c, err := client.NewWithConn(conn)
	if err != nil {
		return "", fmt.Errorf("making a containerd client for %s: %w", r.Endpoint, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("asking containerd for its version at %s: %w", r.Endpoint, err)
	}
	return answer.Version, nil
}

// WaitReady waits until the runtime says RuntimeReady. A refused connection means
// that the daemon is not back yet.
func (r *Runtime) WaitReady(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		info, err := r.Info(ctx)
		if err == nil && info.Ready {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("RuntimeReady is false: %s", info.Message)
		}
		if ctx.Err() == nil || last == nil {
			last = err // the reason before time was up says more than the deadline itself
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the container runtime at %s: %w: %w", r.Endpoint, context.Cause(ctx), last)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
