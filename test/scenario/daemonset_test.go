package scenario

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/test/fleet/testfleet"
)

// TestAFleetIsUpgradedByPods is the smallest fleet with its agents in the DaemonSet: installed by one line,
// upgraded with the agent's pod and then the host killed at work, and removed without residue.
func TestAFleetIsUpgradedByPods(t *testing.T) {
	if os.Getenv("REFIT_PODS") == "" {
		t.Skip("set REFIT_PODS=1 (as root) to upgrade a real fleet whose agents are pods: make e2e")
	}
	t.Setenv("REFIT_AGENT", "daemonset")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	s := &story{t: t, ctx: ctx}
	s.upSmall()
	t.Run("the pod has no capability and no namespace of its host", s.podIsConfined)
	t.Run("the credential of a host reaches its own Machine only", s.credentialIsNarrow)
	require.True(t, t.Run("one edit takes the fleet to the next minor, whatever is killed", s.upgradeByPods))
	t.Run("nothing of Refit is left", s.removed)
}

func (s *story) upSmall() {
	name := os.Getenv("REFIT_FLEET_NAME")
	if name == "" {
		name = "pods"
	}
	f, err := testfleet.Up(s.ctx, Options(name, 1, os.Stderr))
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.dump()
		}
		if os.Getenv("REFIT_KEEP_FLEET") == "" {
			require.NoError(s.t, f.Down(context.Background()))
		}
	})
	s.env, err = Open(f, os.Stderr)
	require.NoError(s.t, err)
	require.NoError(s.t, s.env.Install(s.ctx))
	require.NoError(s.t, s.env.Adopt(s.ctx))
	// The only worker: its pods wait for it.
	p := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: MachineNamespace, Name: "workers"}}
	raw := []byte(`{"spec":{"template":{"spec":{"drain":{"singleNode":"InPlace"}}}}}`)
	require.NoError(s.t, s.env.Client.Patch(s.ctx, p, client.RawPatch("application/merge-patch+json", raw)))
}

func (s *story) podIsConfined(t *testing.T) {
	h := s.env.Fleet.Host("worker-1")
	out, err := h.Exec(s.ctx, nil, "sh", "-c", `p=$(pgrep -f '^/refit-agent run --daemonset'); cat /proc/$p/status; for n in pid net mnt ipc; do [ $(readlink /proc/$p/ns/$n) = $(readlink /proc/1/ns/$n) ] && echo shared $n; done; true`)
	require.NoError(t, err)
	status := string(out)
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		assert.Contains(t, status, set+":\t0000000000000000\n")
	}
	assert.Contains(t, status, "NoNewPrivs:\t1\n")
	assert.Contains(t, status, "Seccomp:\t2\n")
	assert.NotContains(t, status, "shared ")
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "RssAnon") {
			s.env.Say("agent's pod on worker-1: %s", strings.TrimSpace(line))
		}
	}
}

func (s *story) upgradeByPods(t *testing.T) {
	k := &killer{story: s, t: t}
	begin := time.Now()
	require.NoError(t, s.env.Edit(s.ctx, To))
	var agentKilled, hostKilled atomic.Bool
	err := s.env.Follow(s.ctx, AllAt(To), func(c Change) {
		m := &c.Machine
		s.env.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), m.Name, Line(m))
		op := m.Status.LastOperation
		if m.Status.Phase != v1alpha1.PhaseApplying || op == nil || op.State != v1alpha1.OperationProcessing {
			return
		}
		h := s.env.Fleet.Host(m.Name)
		if m.Name == "worker-1" && hostKilled.CompareAndSwap(false, true) {
			k.killHost(h, op.ID)
		}
		if m.Name != "worker-1" && agentKilled.CompareAndSwap(false, true) {
			k.killAgent(h)
		}
	})
	k.wg.Wait()
	require.NoError(t, err)
	assert.True(t, agentKilled.Load() && hostKilled.Load(), "a pod and a host were killed at work")
	pods, err := s.env.Kube.CoreV1().Pods("refit-agent").List(s.ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for i := range pods.Items {
		assert.Equal(t, corev1.PodRunning, pods.Items[i].Status.Phase, pods.Items[i].Name)
	}
}

func (s *story) removed(t *testing.T) {
	require.Eventually(t, func() bool {
		out, err := s.env.Refit(s.ctx, "uninstall", "--delete-data")
		if err != nil {
			s.env.Say("uninstall: %s%v", out, err)
		}
		return err == nil
	}, 5*time.Minute, 5*time.Second, "a machine may be soaking")
	_, err := s.env.Kube.CoreV1().Namespaces().Get(s.ctx, "refit-agent", metav1.GetOptions{})
	require.Error(t, err)
	for _, h := range s.env.Fleet.Hosts() {
		_, err := h.Exec(s.ctx, nil, "rm", "/usr/local/bin/refit-agent") // which this scenario has put there
		require.NoError(t, err)
		// The keyring of the packages is the host's own: the fleet has put it there.
		out, err := h.Exec(s.ctx, nil, "sh", "-c", "find /usr /etc /var/lib/refit /run /opt -xdev -path /etc/apt/keyrings -prune -o '(' -name 'refit*' -o -path '/var/lib/refit/*' -o -path '/run/refit/*' ')' -print | sort")
		require.NoError(t, err)
		var left []string
		for line := range strings.Lines(string(out)) {
			left = append(left, strings.TrimSpace(line))
		}
		assert.ElementsMatch(t, []string{"/etc/refit", "/run/refit", "/var/lib/refit"}, left, "on %s: empty directories", h.Name())
		units, err := h.Exec(s.ctx, nil, "systemctl", "list-unit-files", "--no-legend", "refit*")
		if err == nil {
			assert.Empty(t, strings.TrimSpace(string(units)), h.Name())
		}
	}
}
