package etcd

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/pkg/upgrade"
	cluster "github.com/refit-dev/refit/test/etcd"
)

// look is what a member's host sees, once it sees what is waited for.
func look(t *testing.T, root string, want func(upgrade.EtcdFacts) bool) upgrade.EtcdFacts {
	t.Helper()
	e := New(root)
	e.Timeout = time.Second
	var last upgrade.EtcdFacts
	require.Eventually(t, func() bool {
		facts, err := e.Look(context.Background())
		if err == nil && facts != nil {
			last = *facts
		}
		return err == nil && facts != nil && want(*facts)
	}, time.Minute, 50*time.Millisecond, "last seen: %+v", &last)
	return last
}

func memberNamed(t *testing.T, f upgrade.EtcdFacts, name string) upgrade.EtcdMemberFacts {
	t.Helper()
	for _, m := range f.Members {
		if m.Name == name {
			return m
		}
	}
	require.Fail(t, "no such member", "%s is not in %+v", name, f.Members)
	return upgrade.EtcdMemberFacts{}
}

func healthy(f upgrade.EtcdFacts) (n int) {
	for _, m := range f.Members {
		if m.Healthy {
			n++
		}
	}
	return n
}

func TestEveryMemberOfAWellClusterIsSeenFromEachHost(t *testing.T) {
	c := cluster.Start(t, 3)
	c.Put(c.Members[0], 50, 100)
	for _, m := range c.Members {
		f := look(t, m.Root, func(f upgrade.EtcdFacts) bool { return healthy(f) == 3 && f.Quorum && f.ClusterVersion != "" })
		require.Len(t, f.Members, 3)
		assert.Empty(t, f.Alarms)
		require.NotNil(t, f.Own())
		assert.Equal(t, m.Name, f.Own().Name, "each host knows which member is its own")
		assert.NotEmpty(t, f.Leader)
		for _, other := range f.Members {
			assert.True(t, other.Started)
			assert.False(t, other.Learner)
			assert.NotEmpty(t, other.Version)
			assert.Positive(t, other.DBSize)
			assert.Positive(t, other.AppliedIndex)
			assert.Empty(t, other.Problem)
		}
	}
}

func TestAMemberThatIsDownIsSaidToBeAndTheOthersAreNot(t *testing.T) {
	c := cluster.Start(t, 3)
	c.Kill(c.Members[2])
	f := look(t, c.Members[0].Root, func(f upgrade.EtcdFacts) bool { return healthy(f) == 2 && f.Quorum })
	down := memberNamed(t, f, "cp3")
	assert.True(t, down.Started)
	assert.NotEmpty(t, down.Problem)

	c.Kill(c.Members[1])
	f = look(t, c.Members[0].Root, func(f upgrade.EtcdFacts) bool { return !f.Quorum && healthy(f) == 0 })
	assert.Len(t, f.Members, 3, "the list comes without a quorum, too")
	assert.NotEmpty(t, memberNamed(t, f, "cp1").Problem, "one that is alone does not serve")
}

func TestAMemberThatNamesAnAddressAtWhichAnotherOneAnswersIsNotTakenForThatOne(t *testing.T) {
	c := cluster.StartAlike(t, 3)
	f := look(t, c.Members[0].Root, func(f upgrade.EtcdFacts) bool { return f.Quorum && healthy(f) == 1 })
	require.NotNil(t, f.Own())
	assert.True(t, f.Own().Healthy, "its own host knows where it listens")
	for _, name := range []string{"cp2", "cp3"} {
		assert.Contains(t, memberNamed(t, f, name).Problem, "--advertise-client-urls")
	}
	require.Error(t, f.Safe(nil), "nobody knows how they are")
	f = look(t, c.Members[1].Root, func(f upgrade.EtcdFacts) bool { return f.Quorum })
	assert.True(t, memberNamed(t, f, "cp1").Healthy, "its address is its own")
	assert.Equal(t, "cp2", f.Own().Name)
}

func TestAMemberThatStandsStillHoldsUpNoAnswerAndCatchesUpOnceItGoesOn(t *testing.T) {
	c := cluster.Start(t, 3)
	leader, still := c.Leader(), c.Followers()[0]
	e := New(leader.Root)
	e.Timeout = time.Second
	c.Freeze(still)
	c.Put(leader, 300, 10)
	began := time.Now()
	f, err := e.Look(context.Background())
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 10*time.Second, "it is bounded by what one question may take, not by the member")
	assert.False(t, memberNamed(t, *f, still.Name).Healthy)
	c.Thaw(still)
	look(t, leader.Root, func(f upgrade.EtcdFacts) bool { return healthy(f) == 3 && memberNamed(t, f, still.Name).Behind == 0 })
}

func TestAnUnreachableEtcdIsAnErrorWithinItsTime(t *testing.T) {
	c := cluster.Start(t, 1)
	c.Freeze(c.Members[0])
	e := New(c.Members[0].Root)
	e.Timeout = 500 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := e.Look(ctx)
	require.Error(t, err)
	assert.NoError(t, ctx.Err(), "it did not take the time that was there")
	c.Thaw(c.Members[0])
}

func TestLearnersAndMembersThatNeverRanAreToldApart(t *testing.T) {
	c := cluster.Start(t, 3)
	c.AddLearner()
	f := look(t, c.Members[0].Root, func(f upgrade.EtcdFacts) bool { return len(f.Members) == 4 && healthy(f) == 4 })
	assert.True(t, memberNamed(t, f, "cp4").Learner)
	assert.False(t, memberNamed(t, f, "cp1").Learner)

	c.AddUnstarted()
	f = look(t, c.Members[0].Root, func(f upgrade.EtcdFacts) bool { return len(f.Members) == 5 })
	fresh := memberNamed(t, f, "")
	assert.False(t, fresh.Started)
	assert.False(t, fresh.Healthy)
}

func TestAlarmsAreSeen(t *testing.T) {
	c := cluster.Start(t, 3, "--quota-backend-bytes=2000000")
	client := c.Client(c.Members[1])
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := client.Put(ctx, "full", string(make([]byte, 500_000)))
		return err != nil && ctx.Err() == nil
	}, time.Minute, time.Millisecond, "it has to fill up")
	f := look(t, c.Members[0].Root, func(f upgrade.EtcdFacts) bool { return len(f.Alarms) > 0 })
	assert.Equal(t, pb.AlarmType_NOSPACE.String(), f.Alarms[0].Alarm)
}

func TestTheLeaderIsMovedAwayFromItsHost(t *testing.T) {
	c := cluster.Start(t, 3)
	from, next := c.Leader(), c.Followers()[0]
	to := memberNamed(t, look(t, from.Root, func(f upgrade.EtcdFacts) bool { return healthy(f) == 3 }), next.Name).ID
	require.NoError(t, New(from.Root).MoveLeader(context.Background(), to))
	look(t, from.Root, func(f upgrade.EtcdFacts) bool { return f.Leader == to })
	require.Error(t, New(from.Root).MoveLeader(context.Background(), to), "one that does not lead can hand nothing over")
}

func TestASnapshotIsVerifiedKeptOnceAndBounded(t *testing.T) {
	c := cluster.Start(t, 3)
	c.Put(c.Members[0], 40, 100)
	e := New(c.Members[1].Root)
	first, err := e.Snapshot(context.Background(), "op-1")
	require.NoError(t, err)
	assert.Equal(t, Dir+"/snapshot-op-1.db", first.Path)
	assert.Equal(t, int64(41), first.Revision, "the store begins at 1, and each write is one more")
	assert.Len(t, first.SHA256, 64)
	at, err := os.Stat(e.path(first.Path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), at.Mode().Perm())
	dir, err := os.Stat(e.path(Dir))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), dir.Mode().Perm())

	c.Put(c.Members[0], 1, 1)
	again, err := e.Snapshot(context.Background(), "op-1")
	require.NoError(t, err)
	assert.Equal(t, first, again, "a step that is run again has its snapshot")

	for i, operation := range []string{"op-2", "op-3", "op-4", "op-5"} {
		taken, err := e.Snapshot(context.Background(), operation)
		require.NoError(t, err)
		later := time.Now().Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(e.path(taken.Path), later, later))
	}
	kept, err := filepath.Glob(e.path(Dir + "/*"))
	require.NoError(t, err)
	assert.Equal(t, []string{e.path(Dir + "/snapshot-op-3.db"), e.path(Dir + "/snapshot-op-4.db"), e.path(Dir + "/snapshot-op-5.db")}, kept)
}

func TestAStoreThatNothingWasEverWrittenToHasASnapshotToo(t *testing.T) {
	c := cluster.Start(t, 1)
	taken, err := New(c.Members[0].Root).Snapshot(context.Background(), "op-1")
	require.NoError(t, err)
	assert.Equal(t, int64(1), taken.Revision, "as etcd itself says")
	assert.Len(t, taken.SHA256, 64)
}

func TestADamagedSnapshotIsFoundAndTakenAnew(t *testing.T) {
	c := cluster.Start(t, 1)
	c.Put(c.Members[0], 40, 100)
	e := New(c.Members[0].Root)
	taken, err := e.Snapshot(context.Background(), "op-1")
	require.NoError(t, err)
	whole, err := os.ReadFile(e.path(taken.Path))
	require.NoError(t, err)
	for name, damage := range map[string]func() []byte{
		"a byte of its content is another": func() []byte { b := append([]byte{}, whole...); b[len(b)/2] ^= 1; return b },
		"a byte of its digest is another":  func() []byte { b := append([]byte{}, whole...); b[len(b)-1] ^= 1; return b },
		"its end is missing":               func() []byte { return whole[:len(whole)-32] },
		"half of it is missing":            func() []byte { return whole[:len(whole)/2] },
		"it is empty":                      func() []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(e.path(taken.Path), damage(), 0o600))
			_, err := e.Verify(taken.Path)
			require.ErrorContains(t, err, taken.Path)
			anew, err := e.Snapshot(context.Background(), "op-1")
			require.NoError(t, err)
			assert.Equal(t, taken.Revision, anew.Revision)
		})
	}
}
