package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	fleetstate "github.com/refit-dev/refit/test/fleet/state"
	"github.com/refit-dev/refit/test/fleet/testfleet"
	"github.com/refit-dev/refit/test/powercut"
)

// TestThreeControlPlanesGoOnThroughFaults upgrades three control planes one minor, while one after the other has a fault: an
// etcd member is down before the edit, the executor is killed in the middle of kubeadm's work, a host loses its power there,
// and a member is slow. The subtests share the fleet and run in order; observers of etcd, skew and writes run all the while.
func TestThreeControlPlanesGoOnThroughFaults(t *testing.T) {
	if os.Getenv("REFIT_PLANES") == "" {
		t.Skip("set REFIT_PLANES=1 (as root) to break three real control planes at work: make e2e")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
	defer cancel()
	p := planesFleet(ctx, t)
	members, err := startEtcdWatch(ctx, p.Fleet)
	require.NoError(t, err)
	writes, watch := startWriter(ctx, p.Kube), startSkewWatch(ctx, p.Env)

	ok := t.Run("a member that is down holds all, and is named", p.memberDown) &&
		t.Run("a killed executor, a loss of power and a slow member end at the new version", p.broken)

	lost, longest, count := writes.stop()
	etcd := members.stop()
	violations, samples := watch.stop()
	p.Say("writes through the API: %d, lost %d, longest gap %s", count, lost, longest.Round(time.Millisecond))
	p.Say("etcd: %d samples, fewest members serving %d of 3, longest time without a linearizable read %s", etcd.Samples, etcd.Fewest, etcd.LongestWithoutQuorum.Round(time.Millisecond))
	p.Say("skew: %d samples", samples)
	if !ok {
		return
	}
	assert.Zero(t, lost, "what the API server has taken is still there")
	assert.Greater(t, count, 10)
	assert.Empty(t, violations, "no kubelet was newer than an API server")
	assert.Empty(t, etcd.Below, "healthy members are never fewer than a quorum")
}

// planes has a fleet of three control planes and two workers; the disks of the control planes can lose their power.
type planes struct {
	*Env
	ctx   context.Context
	disks map[string]*powercut.Disk
}

const (
	planesName = "planes"
	planesDisk = 12 << 30 // bytes, sparse: images of two releases, etcd and packages
)

func planesFleet(ctx context.Context, t *testing.T) *planes {
	t.Helper()
	p := &planes{ctx: ctx, disks: map[string]*powercut.Disk{}}
	images := t.TempDir()
	for i := range 3 {
		name := fmt.Sprintf("cp-%d", i+1)
		disk, err := powercut.New(filepath.Join(images, name+".img"), filepath.Join(fleetstate.Dir(planesName), "hosts", name), planesDisk)
		require.NoError(t, err, "this test needs disks whose power can be cut")
		t.Cleanup(func() { assert.NoError(t, disk.Remove()) })
		p.disks[name] = disk
	}
	o := Options(planesName, 2, os.Stderr)
	o.ControlPlanes = 3
	f, err := testfleet.Up(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Down(context.Background())) })
	p.Env, err = Open(f, os.Stderr)
	require.NoError(t, err)
	require.NoError(t, p.Install(ctx))
	require.NoError(t, p.AdoptAt(ctx, From))
	return p
}

func (p *planes) exec(t *testing.T, host string, argv ...string) string {
	t.Helper()
	out, err := p.Fleet.Host(host).Exec(p.ctx, nil, argv...)
	require.NoError(t, err, string(out))
	return string(out)
}

var planesWish = Wish{Kubernetes: To.Kubernetes, Containerd: From.Containerd}

const manifest, aside = "/etc/kubernetes/manifests/etcd.yaml", "/etc/kubernetes/etcd.yaml.aside"

// memberDown stops the member of a host before the edit: nobody gets a grant, and everybody is told why.
func (p *planes) memberDown(t *testing.T) {
	const down = "cp-3"
	p.exec(t, down, "mv", manifest, aside)
	require.Eventually(t, func() bool {
		out, _ := p.Fleet.Host(down).Exec(p.ctx, nil, "sh", "-c", "ss -tln | grep -c :2380 || true")
		return strings.TrimSpace(string(out)) == "0"
	}, 3*time.Minute, time.Second, "the member ends with its manifest")
	require.NoError(t, p.Edit(p.ctx, planesWish))
	until := time.Now().Add(2 * time.Minute)
	var last []v1alpha1.Machine
	require.NoError(t, p.Follow(p.ctx, func(ms []v1alpha1.Machine) (bool, error) {
		last = ms
		for i := range ms {
			if g := ms[i].Status.Grant; g != nil && !g.Void && ms[i].Status.LastOperation != nil && ms[i].Status.LastOperation.ID == g.ID {
				return false, fmt.Errorf("%s was granted an operation while the member of %s was down", ms[i].Name, down)
			}
		}
		return time.Now().After(until), nil
	}, func(c Change) { p.Say("  %-10s %s", c.Machine.Name, Line(&c.Machine)) }))
	for i := range last {
		if last[i].Name == "cp-1" {
			assert.Contains(t, WhyNot(&last[i]), down, "the machine that waits names the member")
		}
	}
	p.exec(t, down, "mv", aside, manifest)
}

// broken goes on with the rollout: the first control plane that runs kubeadm loses its executor, the second its power, and
// while the third is at work another member is slow. All end at the wish by themselves.
func (p *planes) broken(t *testing.T) {
	var struck []string
	begin := time.Now()
	require.NoError(t, p.Follow(p.ctx, AllAt(planesWish), func(c Change) {
		p.Say("  %6s  %-10s %s", time.Since(begin).Round(time.Second), c.Machine.Name, Line(&c.Machine))
		op := c.Machine.Status.LastOperation
		if op == nil || op.State != v1alpha1.OperationProcessing || !strings.HasPrefix(op.Step, string(upgrade.StepKubeadmUpgrade)) || slices.Contains(struck, c.Machine.Name) {
			return
		}
		struck = append(struck, c.Machine.Name)
		switch len(struck) {
		case 1:
			go p.killExecutor(t, c.Machine.Name, op.ID, 20*time.Second)
		case 2:
			go p.losePower(t, c.Machine.Name, 30*time.Second)
		case 3:
			go p.slowMember(t, struck[0], 2*time.Minute)
		}
	}))
	assert.Len(t, struck, 3, "each control plane had its fault")
	machines, err := p.Machines(p.ctx)
	require.NoError(t, err)
	PrintTimings(os.Stderr, machines)
}

func (p *planes) killExecutor(t *testing.T, host, id string, after time.Duration) {
	time.Sleep(after)
	out, err := p.Fleet.Host(host).Exec(p.ctx, nil, "systemctl", "kill", "--signal=KILL", "refit-op-"+id+".service")
	p.Say("          (killed the executor of %s, with all that it had started)", host)
	assert.NoError(t, err, string(out))
}

// losePower cuts a host's power in the middle of kubeadm's work and switches it on again ten seconds later.
func (p *planes) losePower(t *testing.T, host string, after time.Duration) {
	time.Sleep(after)
	h := p.Fleet.Host(host)
	p.Say("          (the power of %s is cut)", host)
	assert.NoError(t, p.disks[host].Cut())
	assert.NoError(t, h.Kill())
	time.Sleep(10 * time.Second)
	assert.NoError(t, p.disks[host].Again())
	assert.NoError(t, h.Start(p.ctx))
	p.Say("          (%s is on again)", host)
}

// slowMember lets etcd of a host run only one part in five of the time, as on a disk that is too slow for it.
func (p *planes) slowMember(t *testing.T, host string, lasts time.Duration) {
	p.Say("          (etcd of %s is slow now)", host)
	out, err := p.Fleet.Host(host).Exec(p.ctx, nil, "sh", "-c", fmt.Sprintf(
		`end=$(($(date +%%s) + %d)); pid=$(pgrep -x etcd); while [ $(date +%%s) -lt $end ]; do kill -STOP $pid; sleep 0.4; kill -CONT $pid; sleep 0.1; done; kill -CONT $pid`, int(lasts.Seconds())))
	assert.NoError(t, err, string(out))
	p.Say("          (etcd of %s is itself again)", host)
}
