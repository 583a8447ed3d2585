package executor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/agent/host/etcd"
	"github.com/refit-dev/refit/agent/host/etcdunit"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	cluster "github.com/refit-dev/refit/test/etcd"
)

// realMember is a host whose etcd is real, and whose packages and units are not: what its unit
// restarts is the program that its package brings.
type realMember struct {
	t      *testing.T
	fake   *hostfake.Host
	etcd   *etcd.Etcd
	member *cluster.Member
	all    *cluster.Cluster
}

func newRealMember(t *testing.T, c *cluster.Cluster, m *cluster.Member) *realMember {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(m.Root, "etc/kubernetes/manifests/etcd.yaml")), "a unit has no manifest")
	r := &realMember{t: t, fake: hostfake.NewEtcd(oldEtcd, 1), etcd: etcd.New(m.Root), member: m, all: c}
	r.etcd.Timeout = 2 * time.Second
	r.etcd.Unit = func(context.Context) (func(string) string, error) {
		flag, err := etcdunit.OfProcess("/proc", "/", m.PID())
		if err != nil {
			return nil, err
		}
		return func(name string) string { return strings.TrimPrefix(flag(name), m.Root) }, nil
	}
	return r
}

func (r *realMember) host() steps.Host {
	h := r.fake.Host()
	h.Etcd, h.Units, h.Facts = r.etcd, realUnits{h.Units, r}, r
	return h
}

// Facts are the fake's, with what the real members say.
func (r *realMember) Facts(ctx context.Context, names []string) (upgrade.Facts, error) {
	f, err := r.fake.Host().Facts.Facts(ctx, names)
	if err != nil {
		return f, err
	}
	f.Packages.Manager = "apt"
	if f.Etcd, err = r.etcd.Look(ctx); err != nil {
		f.Problems = append(f.Problems, upgrade.Problem{Field: "etcd", Message: err.Error()})
	}
	return f, nil
}

type realUnits struct {
	steps.Units
	r *realMember
}

func (u realUnits) Restart(ctx context.Context, unit string) error {
	if err := u.Units.Restart(ctx, unit); err != nil || unit != upgrade.UnitEtcd {
		return err
	}
	version, _, _ := strings.Cut(u.r.fake.Snapshot().Packages["etcd-server"].Version, "-")
	u.r.all.Exchange(u.r.member, "v"+version)
	return os.Remove(filepath.Join(u.r.member.Root, "etc/kubernetes/manifests/etcd.yaml"))
}

// plan is what the planner makes of the host as it is.
func (r *realMember) plan() (upgrade.Plan, error) {
	facts, err := r.Facts(context.Background(), nil)
	require.NoError(r.t, err)
	c := upgrade.Candidate{Name: "etcd-server", Version: newEtcd + "-1", Source: "http://mirror", Path: "etcd.deb", SHA256: hostfake.Digest("etcd-server", newEtcd+"-1")}
	p, err := upgrade.NewPlan(upgrade.PlanInput{
		Spec: v1alpha1.MachineSpec{Roles: []v1alpha1.Role{v1alpha1.RoleEtcd}}, Facts: facts, Candidates: []upgrade.Candidate{c}, Standalone: true,
		Assignment: v1alpha1.Assignment{ID: "1-a", Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{Versions: v1alpha1.Versions{Etcd: "v" + newEtcd}}},
	})
	for i := range p.Steps { // the fake finds staged files by their names
		for j := range p.Steps[i].Packages {
			p.Steps[i].Packages[j].File = "etcd-server_" + newEtcd + "-1.deb"
		}
	}
	return sealed(p), err
}

func (r *realMember) run(p upgrade.Plan) journal.Record {
	r.t.Helper()
	x := New(Config{StateDir: r.t.TempDir(), Host: r.host(), Poll: 20 * time.Millisecond, LockWait: time.Second})
	rec, err := x.Run(context.Background(), upgrade.Operation{ID: "grant-" + r.member.Name, Machine: r.member.Name, Plan: p})
	require.NoError(r.t, err)
	return rec
}

// writer writes one key after another, each until it is acknowledged, through whichever member serves.
type writer struct {
	written atomic.Int64
	longest time.Duration
	errors  int
}

func (w *writer) run(ctx context.Context, client *clientv3.Client) {
	for ctx.Err() == nil {
		began, key := time.Now(), fmt.Sprintf("/registry/written/%06d", w.written.Load())
		for ctx.Err() == nil {
			attempt, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			_, err := client.Put(attempt, key, "there")
			cancel()
			if err == nil {
				w.written.Add(1)
				break
			}
			w.errors++
		}
		w.longest = max(w.longest, time.Since(began))
	}
}

func TestThreeRealMembersGoToTheNextMinorOneByOneAndNoWriteIsLost(t *testing.T) {
	c := cluster.StartAt(t, "v"+oldEtcd, 3)
	var endpoints []string
	var hosts []*realMember
	for _, m := range c.Members {
		endpoints = append(endpoints, m.Endpoint())
		hosts = append(hosts, newRealMember(t, c, m))
	}
	client := c.Client(c.Members[0])
	client.SetEndpoints(endpoints...)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w, done := &writer{}, make(chan struct{})
	go func() { defer close(done); w.run(ctx, client) }()

	for i, r := range hosts {
		p, err := r.plan()
		require.NoError(t, err)
		var kinds []string
		for _, s := range p.Steps {
			kinds = append(kinds, string(s.Kind))
		}
		want := []string{"Preflight", "SnapshotEtcd", "GuardEtcd", "MoveEtcdLeader", "InstallPackages", "ReloadUnits", "RestartUnit", "Verify"}
		if i > 0 {
			want = append(want[:1:1], want[2:]...)
		}
		assert.Equal(t, want, kinds, "the first takes the snapshot")
		rec := r.run(p)
		require.Equal(t, journal.Successful, rec.State, rec.Message)
		facts, err := r.etcd.Look(context.Background())
		require.NoError(t, err)
		assert.Equal(t, newEtcd, facts.Own().Version, "as the member says itself")
		require.NoError(t, facts.OwnCaughtUp())
	}
	require.Eventually(t, func() bool {
		facts, err := hosts[0].etcd.Look(context.Background())
		return err == nil && facts.ClusterVersion == "3.7.0" && facts.Safe(nil) == nil
	}, time.Minute, 100*time.Millisecond, "all of them agree on the new minor")
	stop()
	<-done
	written := w.written.Load()
	require.Greater(t, written, int64(20))
	read, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := client.Get(read, "/registry/written/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, answer.Count, written, "each write that was acknowledged is there")
	t.Logf("%d writes acknowledged, %d found, %d attempts failed, the longest took %s", written, answer.Count, w.errors, w.longest)

	again, err := hosts[0].plan()
	require.NoError(t, err)
	assert.Empty(t, again.Steps, "nothing is left to do")
}

func TestNoRealMemberIsTouchedWhileAnotherOneIsDown(t *testing.T) {
	c := cluster.StartAt(t, "v"+oldEtcd, 3)
	c.Put(c.Members[0], 10, 10)
	r := newRealMember(t, c, c.Members[0])
	well, err := r.plan()
	require.NoError(t, err)
	c.Kill(c.Members[2])
	_, err = r.plan()
	blocked := upgrade.IsBlocked(err)
	require.NotNil(t, blocked)
	assert.Equal(t, upgrade.FindingEtcdUnhealthy, blocked.Reason)
	assert.False(t, blocked.Terminal)
	assert.Contains(t, blocked.Message, c.Members[2].Name)

	x := New(Config{StateDir: t.TempDir(), Host: r.host(), Poll: 20 * time.Millisecond, LockWait: time.Second, DeadlineCap: 8 * time.Second})
	rec, err := x.Run(context.Background(), upgrade.Operation{ID: "grant-1", Machine: "cp1", Plan: well})
	require.NoError(t, err)
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, upgrade.StepGuardEtcd, rec.FailedStep, rec.Message)
	assert.Equal(t, upgrade.FindingEtcdUnhealthy, rec.Reason)
	assert.Contains(t, rec.Message, "nothing was changed on the host")
	assert.Equal(t, oldEtcd+"-1", r.fake.Snapshot().Packages["etcd-server"].Version)
}
