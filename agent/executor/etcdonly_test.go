package executor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/hostfake"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const oldEtcd, newEtcd = "3.6.8", "3.7.0"

// etcdOnlyPlan moves the member of a host that has etcd and nothing else.
func etcdOnlyPlan() upgrade.Plan {
	server := change("etcd-server", oldEtcd+"-1", newEtcd+"-1")
	return sealed(upgrade.Plan{AssignmentID: "12-abc", Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionRestart, Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight, Expect: &upgrade.Expectation{Etcd: oldEtcd, Packages: []upgrade.PackageChange{server}}},
		{Kind: upgrade.StepSnapshotEtcd},
		{Kind: upgrade.StepGuardEtcd},
		{Kind: upgrade.StepMoveEtcdLeader},
		{Kind: upgrade.StepInstallPackages, Packages: []upgrade.PackageChange{server}, Irreversible: "etcd never goes back"},
		{Kind: upgrade.StepReloadUnits},
		{Kind: upgrade.StepRestartUnit, Unit: upgrade.UnitEtcd},
		{Kind: upgrade.StepVerify, Expect: &upgrade.Expectation{Etcd: newEtcd, EtcdMember: true, Packages: []upgrade.PackageChange{server}}},
	}})
}

func etcdOnly(t *testing.T) *bench {
	b := newBench(t, hostfake.NewEtcd(oldEtcd, 3), etcdOnlyPlan())
	b.host.Kept["etcd-server "+oldEtcd+"-1"] = true
	return b
}

func TestAMemberOnAMachineOfItsOwnIsMovedAfterAllOthersWereLookedAt(t *testing.T) {
	b := etcdOnly(t)
	rec := b.finish()
	require.Equal(t, journal.Successful, rec.State, rec.Message)
	s := b.host.Snapshot()
	assert.Equal(t, newEtcd, s.Etcd.Members[0].Version)
	assert.Equal(t, oldEtcd, s.Etcd.Members[1].Version, "the others are not this host's to move")
	assert.Equal(t, "a2", s.Etcd.Leader)
	log := strings.Join(b.host.Log, "\n")
	restarted := strings.Index(log, "restart "+upgrade.UnitEtcd)
	require.Positive(t, restarted)
	for _, before := range []string{"etcd snapshot", "etcd leader to a2", "install etcd-server"} {
		assert.Less(t, strings.Index(log, before), restarted, before)
	}
	assert.Equal(t, 1, strings.Count(log, "restart "+upgrade.UnitEtcd), "it is away once")
}

// etcdOnlyEffects are the labels of what each step does, in the order of the plan.
var etcdOnlyEffects = map[int]string{
	0: "facts", 1: "etcd snapshot", 2: "etcd look", 3: "etcd leader to a2", 4: "install etcd-server=" + newEtcd + "-1", 5: "reload", 6: "restart " + upgrade.UnitEtcd, 7: "etcd look",
}

// Whatever fails, the member is at most one restart away from where it was, and it never goes back.
func TestAFailureAtAnyStepNeverTakesAMemberBack(t *testing.T) {
	for i, step := range etcdOnlyPlan().Steps {
		t.Run(fmt.Sprintf("%d %s", i, step.Kind), func(t *testing.T) {
			b := etcdOnly(t)
			before := withoutSnapshot(b.host.Snapshot())
			b.host.FailIf = b.failWhileForward(i, etcdOnlyEffects[i])
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State, rec.Message)
			assert.Equal(t, step.Kind, rec.FailedStep)
			s := b.host.Snapshot()
			log := strings.Join(b.host.Log, "\n")
			assert.NotContains(t, log, "install etcd-server="+oldEtcd)
			assert.LessOrEqual(t, strings.Count(log, "restart "+upgrade.UnitEtcd), 1, "nothing restarts it a second time")
			switch {
			case i < 4:
				assert.Equal(t, before, withoutSnapshot(s), "nothing is touched before the members were looked at")
				assert.Contains(t, rec.Message, "nothing was changed on the host")
			case i == 4:
				assert.Equal(t, oldEtcd, s.Etcd.Members[0].Version)
			case i >= 5:
				assert.Equal(t, newEtcd+"-1", s.Packages["etcd-server"].Version)
				assert.Contains(t, strings.Join(rec.NotUndone, "\n"), "etcd never goes back")
			}
		})
	}
}

func TestAMemberThatComesBackAsAnotherVersionIsNoSuccess(t *testing.T) {
	b := etcdOnly(t)
	b.host.FailIf = func(label string) error {
		if label == "etcd look" && b.host.Packages["etcd-server"].Version == newEtcd+"-1" {
			b.host.Etcd.Members[0].Version = oldEtcd // as if its unit started another program
		}
		return nil
	}
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "EtcdVersionMismatch", rec.Reason, rec.Message)
}

func TestAHostWhoseMemberHasMovedSinceItsPlanNeedsANewOne(t *testing.T) {
	b := etcdOnly(t)
	b.host.Etcd.Members[0].Version = "3.6.9"
	rec := b.finish()
	require.Equal(t, journal.Failed, rec.State)
	assert.Equal(t, "HostChanged", rec.Reason, rec.Message)
}

// The executor ends after GuardEtcd and goes on later: what it saw of the others then says nothing.
func TestNoMemberIsTakenAwayOnALookOfBeforeTheExecutorEnded(t *testing.T) {
	for name, away := range map[string]string{"etcd": "kubeadm upgrade v" + newKubernetes, "etcd alone": "restart " + upgrade.UnitEtcd} {
		t.Run(name, func(t *testing.T) {
			b := plans[name](t)
			for at := 1; !strings.Contains(strings.Join(b.host.Log, "\n"), "install "); at++ {
				b = plans[name](t)
				b.crashAt(at)
			}
			require.NotContains(t, strings.Join(b.host.Log, "\n"), away)
			b.is(1, false)
			rec := b.finish()
			require.Equal(t, journal.Failed, rec.State)
			assert.Equal(t, upgrade.FindingEtcdUnhealthy, rec.Reason, rec.Message)
			assert.Contains(t, rec.Message, "cp2")
			assert.NotContains(t, strings.Join(b.host.Log, "\n"), away)
		})
	}
}
