package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

const (
	apiManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
	apiAside    = "/root/kube-apiserver.yaml"
)

// TestAnAPIServerAwayForTenMinutesIsNoReasonToGoBack takes the only API server away while a worker is at work, for longer
// than any deadline of the executor's own checks, and looks at what the host did by the host's own record.
func TestAnAPIServerAwayForTenMinutesIsNoReasonToGoBack(t *testing.T) {
	away, err := time.ParseDuration(os.Getenv("REFIT_AWAY"))
	if err != nil {
		t.Skip("set REFIT_AWAY=10m (as root) to take the API server of a real fleet away for so long: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), away+30*time.Minute)
	defer cancel()
	env := costFleet(ctx, t)
	control, worker := env.controlPlane(t), env.Fleet.Host("worker-1")
	require.NotNil(t, worker)
	boot, err := worker.BootID(ctx)
	require.NoError(t, err)

	m := &v1alpha1.Machine{}
	m.Name, m.Namespace = worker.Name(), MachineNamespace
	patch := fmt.Appendf(nil, `{"spec":{"versions":{"containerRuntime":{"name":"containerd","version":%q}}}}`, To.Containerd)
	require.NoError(t, env.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)))
	began := env.firstOperation(ctx, t, worker) // on the host: the grant is accepted
	_, err = control.Exec(ctx, nil, "mv", apiManifest, apiAside)
	require.NoError(t, err)
	gone := time.Now()
	t.Logf("operation %s has begun; the API server is taken away", began.Operation.ID)

	ended := env.endedOperation(ctx, t, worker, began.Operation.ID, away)
	t.Logf("operation %s ended %s after that: %s %s", began.Operation.ID, time.Since(gone).Round(time.Second), ended.State, ended.Operation.Description)
	_, apiErr := apiVersion(ctx, control.Address())
	require.Error(t, apiErr, "it ended while no API server was there")
	assert.Equal(t, apply.Successful, ended.State)

	select {
	case <-time.After(away - time.Since(gone)):
	case <-ctx.Done():
		require.NoError(t, ctx.Err())
	}
	assert.Len(t, operationsOf(ctx, t, worker), 1, "nothing was begun or undone while it was away")
	_, err = control.Exec(ctx, nil, "mv", apiAside, apiManifest)
	require.NoError(t, err)

	require.NoError(t, env.Follow(ctx, func(machines []v1alpha1.Machine) (bool, error) {
		for i := range machines {
			if machines[i].Name == worker.Name() {
				*m = machines[i]
			}
		}
		return m.Status.Phase == v1alpha1.PhaseReady && runs(m, Wish{Kubernetes: From.Kubernetes, Containerd: To.Containerd}), nil
	}, func(c Change) { env.Say("  %s %s", c.Machine.Name, Line(&c.Machine)) }))
	require.NotNil(t, m.Status.LastOperation)
	assert.Equal(t, began.Operation.ID, m.Status.LastOperation.ID)
	assert.Equal(t, v1alpha1.OperationSuccessful, m.Status.LastOperation.State)
	assert.Nil(t, m.Status.RolloutFailure)
	assert.Len(t, operationsOf(ctx, t, worker), 1)
	now, err := worker.BootID(ctx)
	require.NoError(t, err)
	assert.Equal(t, boot, now)
	node := &corev1.Node{}
	require.NoError(t, env.Client.Get(ctx, types.NamespacedName{Name: worker.Name()}, node))
	assert.False(t, node.Spec.Unschedulable)
}

// controlPlane is the first host that has one.
func (e *Env) controlPlane(t *testing.T) *testfleet.Host {
	t.Helper()
	hosts := e.Fleet.Hosts()
	i := slices.IndexFunc(hosts, (*testfleet.Host).ControlPlane)
	require.GreaterOrEqual(t, i, 0)
	return hosts[i]
}

// operationsOf asks the host itself.
func operationsOf(ctx context.Context, t *testing.T, h *testfleet.Host) []apply.Outcome {
	t.Helper()
	out, err := h.Exec(ctx, nil, "refit-agent", "operations", "--output", "json")
	require.NoError(t, err, string(out))
	var list struct{ Items []apply.Outcome }
	require.NoError(t, json.Unmarshal(out, &list), string(out))
	return list.Items
}

func (e *Env) firstOperation(ctx context.Context, t *testing.T, h *testfleet.Host) apply.Outcome {
	t.Helper()
	return e.operation(ctx, t, h, 10*time.Minute, func(apply.Outcome) bool { return true })
}

func (e *Env) endedOperation(ctx context.Context, t *testing.T, h *testfleet.Host, id string, within time.Duration) apply.Outcome {
	t.Helper()
	return e.operation(ctx, t, h, within, func(o apply.Outcome) bool { return o.Operation.ID == id && o.State != apply.Processing })
}

var errNoSuchOperation = errors.New("the host has no such operation")

func (e *Env) operation(ctx context.Context, t *testing.T, h *testfleet.Host, within time.Duration, is func(apply.Outcome) bool) apply.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		for _, o := range operationsOf(ctx, t, h) {
			if is(o) {
				return o
			}
		}
		select {
		case <-ctx.Done():
			require.NoError(t, fmt.Errorf("%w: %w", errNoSuchOperation, ctx.Err()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
