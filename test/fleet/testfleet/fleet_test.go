package testfleet

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

// appManifest is one pod on every node, behind one Service.
const appManifest = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      tolerations: [{operator: Exists}]
      terminationGracePeriodSeconds: 10
      containers:
      - name: app
        image: registry.fleet.test/app:v1
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: {app: app}, ports: [{port: 80, targetPort: 8080}]}
`

// TestAFleetLivesAndLeavesNothing is the whole life of a small fleet, on real hosts. It takes minutes and root.
func TestAFleetLivesAndLeavesNothing(t *testing.T) {
	if os.Getenv("REFIT_FLEET") != "1" || os.Geteuid() != 0 {
		t.Skip("set REFIT_FLEET=1 and be root: this boots real hosts")
	}
	dir, err := os.MkdirTemp("/var/tmp", "fleet")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.Remove(dir), "down leaves the state directory empty") })
	t.Setenv("REFIT_FLEET_STATE", dir)
	before := settings(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()

	f, err := Up(ctx, upOptions(t))
	t.Cleanup(func() {
		require.NoError(t, Down(context.WithoutCancel(ctx), "itest"))
		if f != nil {
			assertNothingLeft(t, f, before)
		}
	})
	require.NoError(t, err, "bringing the fleet up")

	t.Run("every node runs the asked versions", func(t *testing.T) { assertVersions(ctx, t, f) })
	t.Run("a Service reaches the pods of all hosts", func(t *testing.T) { assertService(ctx, t, f) })
	t.Run("a second up changes nothing", func(t *testing.T) { assertUpTwice(ctx, t) })
	t.Run("a command's failure is told", func(t *testing.T) { assertExecError(ctx, t, f.Host("worker-1")) })
	t.Run("a rebooted host is the same machine in another boot", func(t *testing.T) {
		assertOtherBoot(ctx, t, f.Host("worker-1"), func() { require.NoError(t, f.Host("worker-1").Reboot(ctx)) })
	})
	t.Run("a killed host keeps its disk", func(t *testing.T) { assertKillAndStart(ctx, t, f) })
	t.Run("up starts what is off", func(t *testing.T) { assertUpHeals(ctx, t, f) })
	t.Run("nodes are Ready in the end", func(t *testing.T) {
		kubectl(ctx, t, f, "wait", "--for=condition=Ready", "node", "--all", "--timeout=3m")
		assertService(ctx, t, f)
	})
}

func upOptions(t *testing.T) Options {
	o := Options{Name: "itest", ControlPlanes: 1, Workers: 1, Kubernetes: "v1.36.3", Containerd: "v1.7.35", Progress: t.Output()}
	if v := os.Getenv("REFIT_FLEET_KUBERNETES"); v != "" {
		o.Kubernetes = v
	}
	return o
}

func kubectl(ctx context.Context, t *testing.T, f *Fleet, args ...string) string {
	t.Helper()
	out, err := f.Host("cp-1").Exec(ctx, nil, append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
	require.NoError(t, err)
	return string(out)
}

func assertVersions(ctx context.Context, t *testing.T, f *Fleet) {
	kubernetes, containerd := f.Versions()
	got := kubectl(ctx, t, f, "get", "nodes", "-o",
		"jsonpath={range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion} {.status.nodeInfo.containerRuntimeVersion}\n{end}")
	for _, h := range f.Hosts() {
		assert.Contains(t, got, h.Name()+" "+kubernetes+" containerd://"+strings.TrimPrefix(containerd, "v")+"\n")
		out, err := h.Exec(ctx, nil, "apt-mark", "showhold")
		require.NoError(t, err)
		assert.Equal(t, "kubeadm\nkubectl\nkubelet\n", string(out))
	}
}

// assertService asks the Service from each host until each pod has answered there.
func assertService(ctx context.Context, t *testing.T, f *Fleet) {
	_, err := f.Host("cp-1").Exec(ctx, strings.NewReader(appManifest), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "apply", "-f", "-")
	require.NoError(t, err)
	kubectl(ctx, t, f, "rollout", "status", "daemonset/app", "--timeout=3m")
	ip := kubectl(ctx, t, f, "get", "service", "app", "-o", "jsonpath={.spec.clusterIP}")
	for _, h := range f.Hosts() {
		answered := map[string]bool{}
		require.Eventually(t, func() bool {
			if pod, err := ask(ctx, h, ip); err == nil {
				answered[pod] = true
			}
			return len(answered) == len(f.Hosts())
		}, time.Minute, 50*time.Millisecond, "pods that answered on %s: %v", h.Name(), answered)
	}
}

// ask makes one HTTP request from inside the host, with what a host has: bash.
func ask(ctx context.Context, h *Host, ip string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := h.Exec(ctx, strings.NewReader(`exec 3<>/dev/tcp/`+ip+`/80; printf 'GET / HTTP/1.0\r\n\r\n' >&3; tail -n 1 <&3`), "bash", "-s")
	if err == nil && !strings.HasSuffix(string(out), " v1\n") {
		err = errors.New("no answer of the app: " + string(out))
	}
	return string(out), err
}

func assertUpTwice(ctx context.Context, t *testing.T) {
	var out bytes.Buffer
	o := upOptions(t)
	o.Progress = &out
	_, err := Up(ctx, o)
	require.NoError(t, err)
	assert.Contains(t, out.String(), "was up already")
	o.Containerd = "v2.0.0"
	_, err = Up(ctx, o)
	require.ErrorContains(t, err, "started with")
}

func assertExecError(ctx context.Context, t *testing.T, h *Host) {
	_, err := h.Exec(ctx, nil, "ls", "/does-not-exist")
	var failed *hosts.ExecError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 2, failed.ExitCode)
	assert.Contains(t, failed.Stderr, "does-not-exist")

	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = h.Exec(short, nil, "sleep", "54321")
	require.Error(t, err)
	assert.Less(t, time.Since(begin), 5*time.Second)
	require.Eventually(t, func() bool {
		ps, err := h.Exec(ctx, nil, "ps", "-eo", "args")
		return err == nil && !strings.Contains(string(ps), "sleep 54321")
	}, 5*time.Second, 50*time.Millisecond, "the command ends with its context")
}

func assertOtherBoot(ctx context.Context, t *testing.T, h *Host, boot func()) {
	t.Helper()
	machine, bootID := identity(ctx, t, h)
	boot()
	sameMachine, otherBoot := identity(ctx, t, h)
	assert.Equal(t, machine, sameMachine)
	assert.NotEqual(t, bootID, otherBoot)
}

func identity(ctx context.Context, t *testing.T, h *Host) (machineID, bootID string) {
	t.Helper()
	out, err := h.Exec(ctx, nil, "cat", "/etc/machine-id")
	require.NoError(t, err)
	bootID, err = h.BootID(ctx)
	require.NoError(t, err)
	return string(out), bootID
}

func assertKillAndStart(ctx context.Context, t *testing.T, f *Fleet) {
	h := f.Host("worker-1")
	assertOtherBoot(ctx, t, h, func() {
		_, err := h.Exec(ctx, nil, "touch", "/var/lib/written-before-death")
		require.NoError(t, err)
		require.NoError(t, h.Kill())
		assert.False(t, h.Running())
		_, err = h.Exec(ctx, nil, "true")
		require.ErrorIs(t, err, hosts.ErrOff)
		assert.FileExists(t, filepath.Join(h.RootDir(), "var/lib/written-before-death"), "the disk of a dead host can be read")
		require.NoError(t, h.Start(ctx))
	})
	_, err := h.Exec(ctx, nil, "ls", "/var/lib/written-before-death")
	require.NoError(t, err)
}

func assertUpHeals(ctx context.Context, t *testing.T, f *Fleet) {
	require.NoError(t, f.Host("worker-1").Kill())
	require.NoError(t, f.Host("cp-1").Kill())
	_, err := Up(ctx, upOptions(t))
	require.NoError(t, err)
	assert.True(t, f.Host("worker-1").Running())
	assert.True(t, f.Host("cp-1").Running())
}

// settings are those of the machine that a kubelet changes.
func settings(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "sysctl", "net.ipv4.ip_forward", "vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops",
		"kernel.keys.root_maxkeys", "fs.inotify.max_user_instances").Output()
	require.NoError(t, err)
	return string(out)
}

func assertNothingLeft(t *testing.T, f *Fleet, before string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	left, err := f.record.Site().Leftovers(ctx)
	require.NoError(t, err)
	assert.Empty(t, left)
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), os.Getenv("REFIT_FLEET_STATE"))
	ps, err := exec.CommandContext(ctx, "ps", "-eo", "args").Output()
	require.NoError(t, err)
	assert.NotContains(t, string(ps), f.record.Site().Link()+"-")
	assert.Equal(t, before, settings(t))
}
