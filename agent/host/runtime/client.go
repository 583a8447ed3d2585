// Package runtime talks to the container runtime over its own socket. What the
// daemon answers is what runs; a program on disk is not asked.
package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// callTimeout bounds one question to the daemon.
	callTimeout = 30 * time.Second
	// maxMessage is the bound the kubelet uses for answers of the runtime.
	maxMessage = 16 << 20
)

// Runtime is the container runtime of this host.
type Runtime struct {
	// Endpoint such as unix:///run/containerd/containerd.sock.
	Endpoint string
	// CgroupDriver of the kubelet, systemd or cgroupfs; "" takes the runtime's own.
	CgroupDriver string

	mu   sync.Mutex
	conn *grpc.ClientConn
}

// New returns the runtime behind an endpoint. It connects on first use and again
// whenever the daemon was restarted.
func New(endpoint string) *Runtime { return &Runtime{Endpoint: endpoint} }

// Close ends the connection.
func (r *Runtime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn = nil
	return err
}

func (r *Runtime) dial() (*grpc.ClientConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		return r.conn, nil
	}
	if !strings.HasPrefix(r.Endpoint, "unix://") {
		return nil, fmt.Errorf("container runtime endpoint %q: want a socket such as unix:///run/containerd/containerd.sock", r.Endpoint)
	}
	conn, err := grpc.NewClient(r.Endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a socket that only root opens
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		// A daemon that restarts is back within seconds: the default backoff of up to two minutes would hide it.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("connecting to the container runtime at %s: %w", r.Endpoint, err)
	}
	r.conn = conn
	return conn, nil
}

func (r *Runtime) cri() (runtimev1.RuntimeServiceClient, error) {
	conn, err := r.dial()
	if err != nil {
		return nil, err
	}
	return runtimev1.NewRuntimeServiceClient(conn), nil
}

// ask calls the runtime service with a time limit and says what was asked in the error.
func ask[Q, A any](ctx context.Context, r *Runtime, what string, call func(runtimev1.RuntimeServiceClient, context.Context, Q, ...grpc.CallOption) (A, error), request Q) (A, error) {
	var none A
	client, err := r.cri()
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := call(client, ctx, request)
	if err != nil {
		return none, fmt.Errorf("%s at %s: %w", what, r.Endpoint, err)
	}
	return answer, nil
}
