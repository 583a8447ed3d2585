package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// crashAPI ends the agent around the write that carries the acceptance.
type crashAPI struct {
	agent.API
	grantID string
	before  func() error // instead of sending; nil: send
	after   func() error // after the API server has it
}

func (a *crashAPI) ApplyStatus(ctx context.Context, status v1alpha1.MachineStatus, version string) (*v1alpha1.Machine, error) {
	if status.Accepted == nil || status.Accepted.GrantID != a.grantID || status.LastOperation != nil && status.LastOperation.ID == a.grantID {
		return a.API.ApplyStatus(ctx, status, version)
	}
	if a.before != nil {
		return nil, a.before()
	}
	machine, err := a.API.ApplyStatus(ctx, status, version)
	if err == nil && a.after != nil {
		return nil, a.after()
	}
	return machine, err
}

var errKilled = errors.New("killed")

func TestGrantedPlanRunsOnceAndIsReported(t *testing.T) {
	c := newCluster(t)
	c.startAgent(nil)
	planned := c.assign("1-a", 1)
	assert.Equal(t, planned.Generation, planned.Status.ObservedGeneration)
	assert.True(t, meta.IsStatusConditionTrue(planned.Status.Conditions, v1alpha1.ConditionStaged))
	assert.Equal(t, v1alpha1.DisruptionDrain, planned.Status.Plan.Disruption)
	require.NotEmpty(t, planned.Status.Plan.Steps)
	assert.Equal(t, oldVersion, planned.Status.Versions.Kubelet)

	c.grant("g1")
	done := c.eventually("successful", succeeded("g1"))
	assert.Equal(t, newVersion, done.Status.Versions.Kubelet, "the end and the new versions come in one write")
	assert.Equal(t, done.Status.LastOperation.StepsTotal, done.Status.LastOperation.StepsDone)
	assert.Equal(t, 1, c.host.begun("g1"))
	assert.Nil(t, done.Status.HostFailure)
}

// Each row is a crash window of package accept's table.
func TestKilledAgentFinishesTheGrantOnce(t *testing.T) {
	for name, crash := range map[string]func(c *cluster) *running{
		"before the acceptance was sent": func(c *cluster) *running {
			return c.startAgent(func(api agent.API, kill context.CancelFunc) agent.API {
				return &crashAPI{API: api, grantID: "g1", before: func() error { kill(); return errKilled }}
			})
		},
		"after the acceptance arrived, before the operation was on disk": func(c *cluster) *running {
			return c.startAgent(func(api agent.API, kill context.CancelFunc) agent.API {
				return &crashAPI{API: api, grantID: "g1", after: func() error { kill(); return errKilled }}
			})
		},
		"after the operation was on disk, before the unit was started": func(c *cluster) *running {
			var r *running
			c.host.beforeStart = func() error { r.kill(); return errKilled }
			r = c.startAgent(nil)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			first := crash(c)
			c.assign("1-a", 1)
			c.grant("g1")
			<-first.done
			c.host.set(func() { c.host.beforeStart = nil })
			require.Zero(t, c.host.begun("g1"), "nothing may have run yet")
			c.startAgent(nil)
			c.eventually("successful", succeeded("g1"))
			assert.Equal(t, 1, c.host.begun("g1"))
		})
	}
}

func TestKilledAgentFollowsARunningUnit(t *testing.T) {
	c := newCluster(t)
	c.host.step = make(chan struct{})
	first := c.startAgent(nil)
	c.assign("1-a", 1)
	c.grant("g1")
	c.host.step <- struct{}{}
	c.eventually("processing", endedAs("g1", v1alpha1.OperationProcessing))
	first.stop()

	c.startAgent(nil)
	c.never("changed in its versions while the work runs", time.Second, func(m *v1alpha1.Machine) bool {
		return m.Status.Versions.Kubelet != oldVersion
	})
	close(c.host.step)
	done := c.eventually("successful", succeeded("g1"))
	assert.Equal(t, newVersion, done.Status.Versions.Kubelet)
	assert.Equal(t, 1, c.host.begun("g1"))
	assert.Equal(t, 1, c.host.starts["g1"], "a running unit is followed, not started")
}

func TestOperationThatEndedWithoutAnAgentIsReported(t *testing.T) {
	c := newCluster(t)
	c.host.step = make(chan struct{})
	c.host.fail = "KubeletUnhealthy"
	first := c.startAgent(nil)
	c.assign("1-a", 1)
	c.grant("g1")
	c.host.step <- struct{}{}
	c.eventually("processing", endedAs("g1", v1alpha1.OperationProcessing))
	first.stop()
	close(c.host.step)
	require.Eventually(t, func() bool { running, _ := c.host.Running(context.Background(), "g1"); return !running }, patience, 10*time.Millisecond)

	c.startAgent(nil)
	done := c.eventually("failed", endedAs("g1", v1alpha1.OperationFailed))
	assert.Equal(t, "KubeletUnhealthy", done.Status.LastOperation.Reason)
	assert.True(t, done.Status.LastOperation.RolledBack)
	assert.Equal(t, 1, c.host.begun("g1"))
}

func TestLostAnswerToAnAcceptanceRunsTheGrantOnce(t *testing.T) {
	c := newCluster(t)
	lost := errors.New("connection reset")
	c.startAgent(func(api agent.API, _ context.CancelFunc) agent.API {
		return &crashAPI{API: api, grantID: "g1", after: func() error { return lost }}
	})
	c.assign("1-a", 1)
	c.grant("g1")
	c.eventually("successful", succeeded("g1"))
	assert.Equal(t, 1, c.host.begun("g1"))
}

func TestAcceptedGrantWithoutRecordsIsObservedAndNeverRun(t *testing.T) {
	for name, tc := range map[string]struct {
		kubelet, reason string
		state           v1alpha1.OperationState
	}{
		"the host does not run the target": {oldVersion, report.ReasonJournalMissing, v1alpha1.OperationFailed},
		"the host runs the target":         {newVersion, "", v1alpha1.OperationSuccessful},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			first := c.startAgent(func(api agent.API, kill context.CancelFunc) agent.API {
				return &crashAPI{API: api, grantID: "g1", after: func() error { kill(); return errKilled }}
			})
			c.assign("1-a", 1)
			c.grant("g1")
			<-first.done
			c.host.state, c.host.kubelet = store.New(t.TempDir()), tc.kubelet

			c.startAgent(nil)
			done := c.eventually("reported", endedAs("g1", tc.state))
			assert.Equal(t, tc.reason, done.Status.LastOperation.Reason)
			assert.Equal(t, tc.kubelet, done.Status.Versions.Kubelet)
			assert.Zero(t, c.host.begun("g1"))
			assert.Zero(t, c.host.starts["g1"])
		})
	}
}

// An old intent on a restored disk must not pass for a fresh one.
func TestIntentOfAnotherBootIsNotResumed(t *testing.T) {
	c := newCluster(t)
	first := c.startAgent(func(api agent.API, kill context.CancelFunc) agent.API {
		return &crashAPI{API: api, grantID: "g1", after: func() error { kill(); return errKilled }}
	})
	c.assign("1-a", 1)
	c.grant("g1")
	<-first.done
	c.host.bootID = "boot-2"
	c.startAgent(nil)
	done := c.eventually("reported", endedAs("g1", v1alpha1.OperationFailed))
	assert.Equal(t, report.ReasonJournalMissing, done.Status.LastOperation.Reason)
	assert.Zero(t, c.host.begun("g1"))
}

func TestGrantThatPermitsNothingIsNotAccepted(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(c *cluster)
		change  func(g *v1alpha1.Grant)
		reason  string
	}{
		"void":                      {change: func(g *v1alpha1.Grant) { g.Void, g.Epoch = true, 9 }},
		"of another plan":           {change: func(g *v1alpha1.Grant) { g.PlanHash = "other" }, reason: accept.ReasonGrantMismatch},
		"of another assignment":     {change: func(g *v1alpha1.Grant) { g.AssignmentID = "0-z" }, reason: accept.ReasonGrantMismatch},
		"of an older coordinator":   {change: func(g *v1alpha1.Grant) { g.Epoch = 2 }},
		"with an id that is a path": {change: func(g *v1alpha1.Grant) { g.ID = "../../etc/passwd" }, reason: accept.ReasonInvalidGrant},
		"on a host that is held": {
			prepare: func(c *cluster) { c.host.set(func() { c.host.hold = &upgrade.HoldFacts{Path: "/etc/refit/hold"} }) },
			reason:  accept.ReasonHeld,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if tc.prepare != nil {
				tc.prepare(c)
			}
			c.startAgent(nil)
			plan := c.assign("1-a", 3).Status.Plan
			grant := v1alpha1.Grant{ID: "g1", AssignmentID: plan.AssignmentID, PlanHash: plan.Hash, Epoch: 3}
			if tc.change != nil {
				tc.change(&grant)
			}
			c.coordinate(func(s *v1alpha1.MachineStatus) { s.Grant = &grant })
			if tc.reason != "" {
				c.eventually("refused", func(m *v1alpha1.Machine) bool {
					return m.Status.HostFailure != nil && m.Status.HostFailure.Reason == tc.reason
				})
			}
			c.never("accepted", 500*time.Millisecond, func(m *v1alpha1.Machine) bool { return m.Status.Accepted != nil })
			assert.Zero(t, c.host.starts["g1"])
		})
	}
}

// The coordinator takes a slot back by overwriting the grant. The acceptance that was
// on its way must fail: it is conditional on the version that carried the grant.
func TestGrantThatIsTakenBackMeanwhileIsNotAccepted(t *testing.T) {
	c := newCluster(t)
	var once bool
	c.startAgent(func(api agent.API, _ context.CancelFunc) agent.API {
		return &interceptAPI{API: api, hook: func(status v1alpha1.MachineStatus) {
			if status.Accepted == nil || once {
				return
			}
			once = true
			c.coordinate(func(s *v1alpha1.MachineStatus) { s.Grant.Void, s.Grant.Epoch = true, 2 })
		}}
	})
	c.assign("1-a", 1)
	c.grant("g1")
	c.eventually("aware of the new epoch", func(m *v1alpha1.Machine) bool { return m.Status.ObservedEpoch == 2 })
	require.True(t, once, "the acceptance must have been tried")
	c.never("accepted", 500*time.Millisecond, func(m *v1alpha1.Machine) bool { return m.Status.Accepted != nil })
	assert.Zero(t, c.host.starts["g1"])
}

type interceptAPI struct {
	agent.API
	hook func(v1alpha1.MachineStatus)
}

func (a *interceptAPI) ApplyStatus(ctx context.Context, status v1alpha1.MachineStatus, version string) (*v1alpha1.Machine, error) {
	a.hook(status)
	return a.API.ApplyStatus(ctx, status, version)
}

func TestHoldIsShownAndItsEndLetsTheGrantThrough(t *testing.T) {
	c := newCluster(t)
	c.host.hold = &upgrade.HoldFacts{Path: "/etc/refit/hold", Message: "disk swap"}
	c.startAgent(nil)
	c.assign("1-a", 1)
	c.grant("g1")
	held := c.eventually("held", func(m *v1alpha1.Machine) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionHeld)
	})
	assert.Contains(t, meta.FindStatusCondition(held.Status.Conditions, v1alpha1.ConditionHeld).Message, "disk swap")
	c.host.set(func() { c.host.hold = nil })
	c.coordinate(func(s *v1alpha1.MachineStatus) { s.Phase = v1alpha1.PhaseWaiting }) // any event; on a host, inotify
	c.eventually("successful", succeeded("g1"))
}

// B13: while another process works on the packages the host is not ready for a grant,
// so that nobody is drained for it; who it is waited for is on the Machine.
func TestAPackageLockHoldsTheGrantBackUntilItIsFree(t *testing.T) {
	c := newCluster(t)
	c.host.lock = &upgrade.LockFacts{PID: 2448, Command: "unattended-upgr", Path: "/var/lib/dpkg/lock-frontend"}
	c.startAgent(nil)
	c.assign("1-a", 1)
	ready := c.eventually("planned, and held", func(m *v1alpha1.Machine) bool {
		return m.Status.Plan != nil && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionHeld)
	})
	held := meta.FindStatusCondition(ready.Status.Conditions, v1alpha1.ConditionHeld)
	assert.Equal(t, "PackageLockHeld", held.Reason)
	assert.Contains(t, held.Message, "process 2448 (unattended-upgr), which holds /var/lib/dpkg/lock-frontend, since 2")

	c.grant("g1")
	c.eventually("refused for now", func(m *v1alpha1.Machine) bool {
		return m.Status.HostFailure != nil && m.Status.HostFailure.Reason == accept.ReasonPackageLockHeld && !m.Status.HostFailure.Terminal
	})
	assert.Nil(t, c.machine().Status.Accepted)
	c.host.set(func() { c.host.lock = nil }) // no event tells of it
	done := c.eventually("successful", succeeded("g1"))
	assert.Nil(t, done.Status.HostFailure)
	assert.False(t, meta.IsStatusConditionTrue(done.Status.Conditions, v1alpha1.ConditionHeld))
}
