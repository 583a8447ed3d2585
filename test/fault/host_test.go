package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/test/checkout"
	"github.com/refit-dev/refit/test/fleet/testfleet"
	"github.com/refit-dev/refit/test/powercut"
)

const stateDir = "/var/lib/refit"

// fleet is brought up by the first test that needs it.
var fleet *testfleet.Fleet

func TestMain(m *testing.M) {
	code := m.Run()
	if fleet != nil {
		if err := errors.Join(fleet.Down(context.Background()), os.RemoveAll(os.Getenv("REFIT_FLEET_STATE"))); err != nil {
			fmt.Fprintln(os.Stderr, "taking the host down:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// machine is a real host with a kubelet that stands alone.
type machine struct {
	*testfleet.Host
	t    *testing.T
	ctx  context.Context
	root string
	// dead is a host that was killed, and that somebody is to switch on again.
	dead atomic.Bool
	// unplugged is one whose disk lost its power, too.
	unplugged atomic.Bool
	// gate that was set up last.
	gate *gate
}

// die is the sudden end of the host; follow switches it on again.
func (m *machine) die() error {
	defer m.dead.Store(true)
	return m.Kill()
}

// needHost skips a test that nobody wants to boot a host for.
func needHost(t *testing.T) {
	t.Helper()
	if os.Getenv("REFIT_FLEET") == "" || os.Geteuid() != 0 {
		t.Skip("set REFIT_FLEET=1 (as root) to boot a real host: make test-fleet")
	}
}

// exhaustive says that there is time for everything.
func exhaustive() bool { return os.Getenv("REFIT_EXHAUSTIVE") != "" }

// realHost is the one host of these tests, up and at the old versions.
func realHost(t *testing.T) *machine {
	t.Helper()
	needHost(t)
	ctx := context.WithoutCancel(t.Context()) // what is put right at the end of a test comes after its context
	if fleet == nil {
		up(t)
	}
	m := &machine{Host: fleet.Hosts()[0], t: t, ctx: ctx}
	m.root = m.RootDir()
	if !m.Running() {
		require.NoError(t, m.Start(ctx))
	}
	t.Cleanup(func() {
		if t.Failed() && m.Running() {
			for _, what := range []string{
				"journalctl --no-pager -n 80 -t refit-executor -t systemd",
				"journalctl --no-pager -n 40 -u kubelet.service -u containerd.service",
				"ctr --namespace k8s.io tasks list; ctr --namespace k8s.io containers list",
			} {
				out, _ := m.Exec(context.Background(), nil, "sh", "-c", what+" 2>&1")
				t.Logf("%s:\n%s", what, out)
			}
		}
	})
	return m
}

func up(t *testing.T) {
	t.Helper()
	root, err := checkout.Root()
	require.NoError(t, err)
	testfleet.Program = filepath.Join(root, "bin", "fleet")
	dir, err := os.MkdirTemp("/var/tmp", "refit-fault-")
	require.NoError(t, err)
	require.NoError(t, os.Setenv("REFIT_FLEET_STATE", dir))
	image, at := diskOf(dir)
	if power, err = powercut.New(image, at, diskSize); err != nil {
		t.Logf("no disk whose power could be cut: %v", err)
		power = nil
	}
	fleet, err = testfleet.Up(t.Context(), testfleet.Options{
		Name: "fault", Workers: 1, NoCluster: true, Progress: t.Output(),
		Kubernetes: before.kubernetes, AlsoKubernetes: []string{after.kubernetes},
		Containerd: "v" + before.containerd, AlsoContainerd: []string{"v" + after.containerd},
	})
	require.NoError(t, err)
	m := &machine{Host: fleet.Hosts()[0], t: t, ctx: t.Context()}
	m.install(root)
}

// install does what an installer of Refit and of a kubelet without a cluster would.
func (m *machine) install(root string) {
	m.t.Helper()
	require.NoError(m.t, m.CopyIn(m.ctx, filepath.Join(root, "bin/refit-executor"), "/usr/bin/refit-executor", 0o755))
	require.NoError(m.t, m.CopyIn(m.ctx, filepath.Join(root, "deploy/systemd/refit-resume.service"), "/etc/systemd/system/refit-resume.service", 0o644))
	driver := strings.TrimSpace(m.sh(`[ -f /sys/fs/cgroup/cgroup.controllers ] && echo systemd || echo cgroupfs`))
	m.write("/var/lib/kubelet/config.yaml", fmt.Sprintf(kubeletConfig, driver))
	m.write("/etc/systemd/system/kubelet.service.d/20-alone.conf", "[Service]\nEnvironment=\"KUBELET_KUBECONFIG_ARGS=\"\nRestartSec=1\n")
	m.write("/etc/kubernetes/manifests/app.yaml", staticPod)
	m.write("/etc/refit/hooks.d/check", "#!/bin/sh\necho ran >>/var/log/hook-ran\n")
	m.sh(`chmod 0755 /etc/refit /etc/refit/hooks.d /etc/refit/hooks.d/check
mkdir -p -m 0700 /var/lib/refit/journal
systemctl daemon-reload
systemctl enable -q refit-resume.service
systemctl restart kubelet.service`)
	m.eventually("the static pod runs", func() bool { return m.containers() == 2 })
	m.sh("sync") // containerd does not sync the images that it has unpacked, and this host has had them for long
}

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: %s
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
staticPodPath: /etc/kubernetes/manifests
`

const staticPod = `apiVersion: v1
kind: Pod
metadata: {name: app, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "registry.fleet.test/app:v1"}]
`

// sh runs a script on the host.
func (m *machine) sh(script string) string {
	m.t.Helper()
	out, err := m.Exec(m.ctx, nil, "bash", "-ec", script)
	require.NoError(m.t, err)
	return string(out)
}

// ask runs a script that may fail.
func (m *machine) ask(script string) (string, error) {
	out, err := m.Exec(m.ctx, nil, "bash", "-c", script)
	return strings.TrimSpace(string(out)), err
}

func (m *machine) write(path, content string) {
	m.t.Helper()
	_, err := m.Exec(m.ctx, strings.NewReader(content), "bash", "-ec", fmt.Sprintf("mkdir -p %s; cat >%s", filepath.Dir(path), path))
	require.NoError(m.t, err)
}

func (m *machine) eventually(what string, ok func() bool) {
	m.t.Helper()
	m.within(3*time.Minute, what, ok)
}

func (m *machine) within(limit time.Duration, what string, ok func() bool) {
	m.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(100 * time.Millisecond) {
		require.NoError(m.t, m.ctx.Err())
		require.True(m.t, time.Now().Before(end), "it never was so that: %s", what)
	}
}

// containers that run: the pod's own and its sandbox.
func (m *machine) containers() int {
	out, err := m.ask("ctr --namespace k8s.io tasks list --quiet")
	if err != nil {
		return -1
	}
	return len(strings.Fields(out))
}

// submit hands an operation over, as the agent does.
func (m *machine) submit(op upgrade.Operation) {
	m.t.Helper()
	data, err := upgrade.MarshalStable(op)
	require.NoError(m.t, err)
	m.write(executor.OperationPath(stateDir, op.ID), string(data))
}

func unitOf(id string) string { return "refit-op-" + id + ".service" }

// start starts the unit of an operation with the properties that the agent gives it, but
// a shorter time to stop: systemd in a container is not told when a control group is
// empty, and waits for all of it after everything in it was killed.
func (m *machine) start(id string) {
	m.t.Helper()
	_, err := m.ask(fmt.Sprintf(`systemctl stop %[1]s 2>/dev/null || true
systemctl reset-failed %[1]s 2>/dev/null || true
systemd-run --quiet --unit=%[1]s --service-type=exec --remain-after-exit --property=KillMode=mixed --property=TimeoutStopSec=5s \
  /usr/bin/refit-executor run --operation %[2]s`, unitOf(id), id))
	if err != nil && !m.dead.Load() && m.Running() {
		m.t.Logf("the unit of operation %s did not start: %v", id, err) // as the agent, try again
	}
}

// working says that some unit works on operations.
func (m *machine) working(id string) bool {
	out, _ := m.ask(fmt.Sprintf("systemctl show -p SubState --value %s refit-resume.service", unitOf(id)))
	return strings.Contains(out, "running") || strings.Contains(out, "start")
}

// record of an operation, read from outside of the host.
func (m *machine) record(id string) (journal.Record, error) {
	return journal.Read(filepath.Join(m.root, stateDir), id)
}

// follow starts the unit again whenever it has ended with its journal open, as the agent
// does, and returns the outcome.
func (m *machine) follow(id string) journal.Record {
	m.t.Helper()
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		require.NoError(m.t, m.ctx.Err())
		require.True(m.t, time.Now().Before(end), "operation %s has no outcome", id)
		if m.dead.Load() {
			m.dead.Store(false)
			require.NoError(m.t, errors.Join(m.plugIn(), m.Start(m.ctx)))
		}
		if !m.Running() {
			continue // it reboots
		}
		rec, err := m.record(id)
		if err == nil && rec.Finished() && !m.working(id) {
			return rec
		}
		if !m.dead.Load() && !m.working(id) {
			m.start(id)
		}
	}
}
