package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// TestAHostIsKeptAsItsSpecSaysUnderGrants takes one fleet through what happens between upgrades: a package that
// somebody moved, another kubelet configuration, the owner's hold and hooks, and certificates that end. The subtests
// share the fleet and run in order.
func TestAHostIsKeptAsItsSpecSaysUnderGrants(t *testing.T) {
	if os.Getenv("REFIT_IDLE") == "" {
		t.Skip("set REFIT_IDLE=10m (as root) for the long tests on a real fleet: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	k := &keeper{Env: costFleet(ctx, t), ctx: ctx}
	require.True(t, t.Run("a runtime moves to another major and back through Refit", k.thereAndBack))
	t.Run("a runtime that somebody moved is reported with the command and left, where the policy is Report", k.driftReported)
	t.Run("a runtime that somebody moved goes back to its pin under a grant, where the policy is Repair", k.driftRepaired)
	t.Run("a kubelet configuration becomes effective, and goes with its wish", k.kubeletConfigured)
	t.Run("a host that its owner holds takes no grant until the hold is gone", k.held)
	t.Run("a hook that fails keeps the host as it was, and says what it printed", k.hooked)
	t.Run("certificates that end soon are renewed under a grant", k.renewed)
}

// keeper has a fleet and its first worker, on which most happens.
type keeper struct {
	*Env
	ctx context.Context
}

const kept = "worker-1"

func (k *keeper) host(t *testing.T, name string) *testfleet.Host {
	t.Helper()
	h := k.Fleet.Host(name)
	require.NotNil(t, h)
	return h
}

func (k *keeper) exec(t *testing.T, host string, argv ...string) string {
	t.Helper()
	out, err := k.host(t, host).Exec(k.ctx, nil, argv...)
	require.NoError(t, err, string(out))
	return string(out)
}

// wish changes the spec of one Machine by a merge patch.
func (k *keeper) wish(t *testing.T, name, patch string) {
	t.Helper()
	m := &v1alpha1.Machine{}
	m.Name, m.Namespace = name, MachineNamespace
	require.NoError(t, k.Client.Patch(k.ctx, m, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// await follows one Machine until it is as asked for.
func (k *keeper) await(t *testing.T, name string, is func(*v1alpha1.Machine) bool) *v1alpha1.Machine {
	t.Helper()
	var found *v1alpha1.Machine
	require.NoError(t, k.Follow(k.ctx, func(machines []v1alpha1.Machine) (bool, error) {
		for i := range machines {
			if machines[i].Name == name {
				found = &machines[i]
			}
		}
		return found != nil && is(found), nil
	}, func(c Change) { k.Say("  %s %s", c.Machine.Name, Line(&c.Machine)) }))
	return found
}

func condition(m *v1alpha1.Machine, kind string) (yes bool, message string) {
	c := meta.FindStatusCondition(m.Status.Conditions, kind)
	if c == nil {
		return false, ""
	}
	return c.Status == "True", c.Message
}

// settled says that the wish as it is now is met and nothing goes on.
func settled(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpToDate)
	return c != nil && c.Status == "True" && c.ObservedGeneration == m.Generation && m.Status.Phase == v1alpha1.PhaseReady
}

func runtimeIs(m *v1alpha1.Machine, version string) bool {
	v := m.Status.Versions
	return v != nil && v.ContainerRuntime != nil && strings.HasSuffix(v.ContainerRuntime.Text, version)
}

func operationID(m *v1alpha1.Machine) string {
	if m.Status.LastOperation == nil {
		return ""
	}
	return m.Status.LastOperation.ID
}

func (k *keeper) thereAndBack(t *testing.T) {
	for _, version := range []string{To.Containerd, From.Containerd} {
		k.wish(t, kept, fmt.Sprintf(`{"spec":{"versions":{"containerRuntime":{"name":"containerd","version":%q}}}}`, version))
		k.await(t, kept, func(m *v1alpha1.Machine) bool { return settled(m) && runtimeIs(m, version) })
	}
}

// moveByHand is what an operator or unattended-upgrades would do.
func (k *keeper) moveByHand(t *testing.T) {
	k.exec(t, kept, "apt-mark", "unhold", "containerd.io")
	k.apt(k.ctx, t, k.host(t, kept), To.Containerd)
	k.exec(t, kept, "systemctl", "restart", "containerd.service")
}

func (k *keeper) driftReported(t *testing.T) {
	k.wish(t, kept, `{"spec":{"driftPolicy":"Report"}}`)
	before := k.await(t, kept, settled)
	k.moveByHand(t)
	m := k.await(t, kept, func(m *v1alpha1.Machine) bool {
		yes, _ := condition(m, v1alpha1.ConditionDrifted)
		return yes && runtimeIs(m, To.Containerd)
	})
	_, message := condition(m, v1alpha1.ConditionDrifted)
	assert.Contains(t, message, "containerd")
	assert.Contains(t, message, "apt-get install", "the message names who did it: %s", message)
	time.Sleep(20 * time.Second) // whatever would be begun has begun
	m = k.await(t, kept, func(*v1alpha1.Machine) bool { return true })
	assert.Equal(t, operationID(before), operationID(m), "nothing is done about it")
	assert.True(t, runtimeIs(m, To.Containerd))
}

func (k *keeper) driftRepaired(t *testing.T) {
	before := k.await(t, kept, func(*v1alpha1.Machine) bool { return true })
	k.wish(t, kept, `{"spec":{"driftPolicy":"Repair"}}`)
	m := k.await(t, kept, func(m *v1alpha1.Machine) bool { return settled(m) && runtimeIs(m, From.Containerd) })
	require.NotNil(t, m.Status.LastOperation)
	assert.NotEqual(t, operationID(before), operationID(m))
	assert.Equal(t, v1alpha1.OperationSuccessful, m.Status.LastOperation.State)
	require.NotEmpty(t, m.Status.History)
	assert.Equal(t, operationID(m), m.Status.History[0].ID, "it went the way of every operation, under a grant")
	drifted, _ := condition(m, v1alpha1.ConditionDrifted)
	assert.False(t, drifted)
}

func (k *keeper) podCapacity(t *testing.T) int64 {
	t.Helper()
	node := &corev1.Node{}
	require.NoError(t, k.Client.Get(k.ctx, types.NamespacedName{Name: kept}, node))
	return node.Status.Capacity.Pods().Value()
}

func (k *keeper) kubeletConfigured(t *testing.T) {
	assert.EqualValues(t, 110, k.podCapacity(t))
	k.wish(t, kept, `{"spec":{"kubelet":{"configuration":{"maxPods":77}}}}`)
	k.await(t, kept, settled)
	assert.Eventually(t, func() bool { return k.podCapacity(t) == 77 }, time.Minute, time.Second)
	k.wish(t, kept, `{"spec":{"kubelet":null}}`)
	k.await(t, kept, settled)
	assert.Eventually(t, func() bool { return k.podCapacity(t) == 110 }, time.Minute, time.Second)
}

func (k *keeper) held(t *testing.T) {
	k.exec(t, kept, "sh", "-c", "echo 'raid rebuild until monday' >/etc/refit/hold")
	k.await(t, kept, func(m *v1alpha1.Machine) bool {
		yes, message := condition(m, v1alpha1.ConditionHeld)
		return yes && strings.Contains(message, "raid rebuild until monday")
	})
	before := k.await(t, kept, func(*v1alpha1.Machine) bool { return true })
	k.wish(t, kept, `{"spec":{"kubelet":{"configuration":{"maxPods":78}}}}`)
	k.await(t, kept, func(m *v1alpha1.Machine) bool {
		yes, message := condition(m, v1alpha1.ConditionWaiting)
		return yes && strings.Contains(message, "raid rebuild until monday")
	})
	k.exec(t, kept, "rm", "/etc/refit/hold")
	m := k.await(t, kept, settled)
	assert.NotEqual(t, operationID(before), operationID(m))
	assert.Eventually(t, func() bool { return k.podCapacity(t) == 78 }, time.Minute, time.Second)
}

func (k *keeper) hooked(t *testing.T) {
	k.exec(t, kept, "mkdir", "-p", "/etc/refit/hooks.d")
	k.exec(t, kept, "sh", "-c", `printf '#!/bin/sh\necho "md0 is degraded"\nexit 1\n' >/etc/refit/hooks.d/raid-check && chmod 0755 /etc/refit/hooks.d/raid-check`)
	k.wish(t, kept, `{"spec":{"hooks":{"preApply":["raid-check"]},"kubelet":{"configuration":{"maxPods":79}}}}`)
	m := k.await(t, kept, func(m *v1alpha1.Machine) bool { return m.Status.RolloutFailure != nil })
	assert.Equal(t, "HookFailed", m.Status.RolloutFailure.Reason)
	assert.Contains(t, m.Status.RolloutFailure.Message, "md0 is degraded")
	assert.EqualValues(t, 78, k.podCapacity(t))
	node := &corev1.Node{}
	require.NoError(t, k.Client.Get(k.ctx, types.NamespacedName{Name: kept}, node))
	assert.False(t, node.Spec.Unschedulable, "the node is given back")

	k.exec(t, kept, "sh", "-c", `printf '#!/bin/sh\necho "$REFIT_MACHINE $REFIT_HOOK_PHASE" >/root/hook.ran\n' >/etc/refit/hooks.d/raid-check`)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"refit.dev/retry":%q}}}`, time.Now().Format(time.RFC3339))
	require.NoError(t, k.Client.Patch(k.ctx, m, client.RawPatch(types.MergePatchType, patch)))
	k.await(t, kept, settled)
	assert.Eventually(t, func() bool { return k.podCapacity(t) == 79 }, time.Minute, time.Second)
	assert.Equal(t, kept+" PreApply\n", k.exec(t, kept, "cat", "/root/hook.ran"))
}

// shortLived makes one certificate of the control plane end in a day.
const shortLived = `cat >/root/short.yaml <<EOF
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
certificateValidityPeriod: 24h
EOF
kubeadm certs renew apiserver-kubelet-client --config /root/short.yaml`

func (k *keeper) endOf(t *testing.T, name string) time.Time {
	t.Helper()
	out := k.exec(t, name, "openssl", "x509", "-enddate", "-noout", "-in", "/etc/kubernetes/pki/apiserver-kubelet-client.crt")
	end, err := time.Parse("Jan _2 15:04:05 2006 MST", strings.TrimSpace(strings.TrimPrefix(out, "notAfter=")))
	require.NoError(t, err)
	return end
}

func (k *keeper) renewed(t *testing.T) {
	name := k.controlPlane(t).Name()
	k.exec(t, name, "sh", "-c", fmt.Sprintf(shortLived, From.Kubernetes))
	require.Less(t, time.Until(k.endOf(t, name)), 25*time.Hour, "the certificate is short-lived")
	k.exec(t, name, "systemctl", "restart", "refit-agent.service") // what is on disk is looked at daily
	k.await(t, name, func(m *v1alpha1.Machine) bool {
		yes, _ := condition(m, v1alpha1.ConditionCertificatesExpiring)
		return yes
	})
	k.wish(t, name, `{"spec":{"kubeadm":{"renewCertificatesBefore":"48h"}}}`)
	m := k.await(t, name, func(m *v1alpha1.Machine) bool {
		expiring, _ := condition(m, v1alpha1.ConditionCertificatesExpiring)
		return settled(m) && !expiring
	})
	require.NotNil(t, m.Status.LastOperation)
	assert.Equal(t, v1alpha1.OperationSuccessful, m.Status.LastOperation.State)
	assert.Greater(t, time.Until(k.endOf(t, name)), 300*24*time.Hour)
}
