package apply_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

// executor is one whose unit does what run says.
type executor struct {
	run    func(id string)
	staged launch.StageResult
	errs   map[string]error
	dead   atomic.Bool // its main process, while the unit is there

	mu      sync.Mutex
	calls   []string
	running map[string]chan struct{}
}

func (x *executor) call(name string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = append(x.calls, name)
	return x.errs[name]
}

func (x *executor) said() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string{}, x.calls...)
}

func (x *executor) Facts(context.Context, []string) (upgrade.Facts, error) {
	return upgrade.Facts{}, x.call("facts")
}

func (x *executor) Candidates(context.Context, upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	return nil, x.call("candidates")
}

func (x *executor) Stage(context.Context, upgrade.Plan) (launch.StageResult, error) {
	return x.staged, x.call("stage")
}

func (x *executor) Start(_ context.Context, id string) error {
	if err := x.call("start"); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	done := make(chan struct{})
	if x.running == nil {
		x.running = map[string]chan struct{}{}
	}
	x.running[id] = done
	go func() {
		defer close(done)
		x.run(id)
	}()
	return nil
}

func (x *executor) unit(id string) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.running[id]
}

func (x *executor) Running(_ context.Context, id string) (bool, error) {
	select {
	case <-x.unit(id):
		return false, nil
	default:
		return x.unit(id) != nil, nil
	}
}

func (x *executor) Alive(ctx context.Context, id string) (bool, error) {
	running, err := x.Running(ctx, id)
	return running && !x.dead.Load(), err
}

func (x *executor) Wait(ctx context.Context, id string) error {
	select {
	case <-x.unit(id):
		return x.call("wait")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *executor) Release(context.Context, string) error { return x.call("release") }

func applier(t *testing.T, x *executor) *apply.Applier {
	t.Helper()
	dir := t.TempDir()
	a := &apply.Applier{
		Executor: x, Store: store.New(filepath.Join(dir, "state")), Hold: func() *upgrade.HoldFacts { return nil },
		MachineID: "m", BootID: "boot-1", LockFile: filepath.Join(dir, "run", "apply.lock"), Poll: time.Millisecond,
	}
	_, err := a.Claim()
	require.NoError(t, err)
	return a
}

func plan(t *testing.T, assignmentID string) upgrade.Plan {
	t.Helper()
	p := upgrade.Plan{AssignmentID: assignmentID, Type: v1alpha1.OperationUpgrade, Disruption: v1alpha1.DisruptionNone, Steps: []upgrade.Step{
		{Kind: upgrade.StepPreflight}, {Kind: upgrade.StepReloadUnits}, {Kind: upgrade.StepVerify},
	}}
	hash, err := p.ComputeHash()
	require.NoError(t, err)
	p.Hash = hash
	return p
}

func accepted(t *testing.T, a *apply.Applier, assignmentID string) upgrade.Operation {
	t.Helper()
	op, err := a.Accept(t.Context(), &v1alpha1.Machine{}, plan(t, assignmentID))
	require.NoError(t, err)
	return op
}

func begin(t *testing.T, a *apply.Applier, id string) *journal.Journal {
	t.Helper()
	op, err := a.Store.Operation(id)
	require.NoError(t, err)
	j, err := journal.NewStore(a.Store.Dir()).Create(op, "boot-1", time.Now)
	require.NoError(t, err)
	return j
}

// step takes a journal one step on.
func step(t *testing.T, j *journal.Journal, i int) {
	t.Helper()
	require.NoError(t, j.Begin(i, "boot-1", journal.Undo{}))
	require.NoError(t, j.Done(i, ""))
}

func TestAPlanIsStagedGrantedAndHandedOverAsTheAgentDoes(t *testing.T) {
	x := &executor{}
	a := applier(t, x)
	op := accepted(t, a, "local-a")
	assert.Equal(t, []string{"stage"}, x.said(), "nothing is started by accepting")
	handed, err := a.Store.Operation(op.ID)
	require.NoError(t, err)
	assert.Equal(t, op.Plan.Hash, handed.Plan.Hash)
	_, err = a.Store.Intent(op.ID)
	require.Error(t, err, "the intent is gone with the operation")
	frozen, err := a.Store.Plan("local-a")
	require.NoError(t, err)
	assert.Equal(t, op.Plan.Hash, frozen.Plan.Hash)
}

func TestOneOperationGoesOnAtATime(t *testing.T) {
	x := &executor{}
	a := applier(t, x)
	op := accepted(t, a, "local-a")

	underWay, err := a.UnderWay("local-a")
	require.NoError(t, err)
	require.NotNil(t, underWay, "accepted and not begun is under way")
	assert.Equal(t, op.ID, underWay.ID)
	_, err = a.UnderWay("local-b")
	assert.Equal(t, accept.ReasonOperationRunning, upgrade.IsBlocked(err).Reason)
	_, err = a.Accept(t.Context(), &v1alpha1.Machine{}, plan(t, "local-a"))
	assert.Equal(t, accept.ReasonOperationRunning, upgrade.IsBlocked(err).Reason, "two that planned at the same time")

	j := begin(t, a, op.ID)
	underWay, err = a.UnderWay("local-a")
	require.NoError(t, err)
	assert.Equal(t, op.ID, underWay.ID, "by its journal")
	for i := range 3 {
		step(t, j, i)
	}
	require.NoError(t, j.Succeed())
	underWay, err = a.UnderWay("local-b")
	require.NoError(t, err)
	assert.Nil(t, underWay)
	last, ok := a.Last("local-a")
	assert.True(t, ok)
	assert.Equal(t, apply.Successful, last.State)
	again := accepted(t, a, "local-a")
	assert.NotEqual(t, op.ID, again.ID, "a grant runs at most once")
}

func TestNothingIsGrantedBesideSomebodyWhoIsGranting(t *testing.T) {
	a := applier(t, &executor{})
	release, err := files.Lock(a.LockFile)
	require.NoError(t, err)
	_, err = a.Accept(t.Context(), &v1alpha1.Machine{}, plan(t, "local-a"))
	require.ErrorIs(t, err, files.ErrLocked)
	a.Poll = time.Second // so it waits for its turn
	time.AfterFunc(time.Millisecond, release)
	accepted(t, a, "local-a")
}

func TestTheOwnersVetoHolds(t *testing.T) {
	a := applier(t, &executor{})
	a.Hold = func() *upgrade.HoldFacts { return &upgrade.HoldFacts{Path: "/etc/refit/hold"} }
	assert.Equal(t, accept.ReasonHeld, upgrade.IsBlocked(a.Permit(plan(t, "local-a"))).Reason)
	_, err := a.Accept(t.Context(), &v1alpha1.Machine{}, plan(t, "local-a"))
	assert.Equal(t, accept.ReasonHeld, upgrade.IsBlocked(err).Reason)
	underWay, err := a.UnderWay("local-a")
	require.NoError(t, err)
	assert.Nil(t, underWay)
}

func TestAPlanThatCannotBeStagedIsRefused(t *testing.T) {
	x := &executor{staged: launch.StageResult{Refused: true, Findings: []upgrade.Finding{{Severity: "Error", Reason: "NoSpace", Message: "/var is full"}}}}
	_, err := applier(t, x).Accept(t.Context(), &v1alpha1.Machine{}, plan(t, "local-a"))
	blocked := upgrade.IsBlocked(err)
	require.NotNil(t, blocked)
	assert.Equal(t, "NoSpace", blocked.Reason)
}

func TestAnOperationIsFollowedToItsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(t *testing.T, j *journal.Journal)
		state apply.State
		code  int
	}{
		"all is done": {func(t *testing.T, j *journal.Journal) {
			for i := range 3 {
				step(t, j, i)
			}
			require.NoError(t, j.Succeed())
		}, apply.Successful, 0},
		"refused by the executor, nothing changed": {func(t *testing.T, j *journal.Journal) {
			require.NoError(t, j.Turn(3, journal.Cause{Reason: "HostRebooted"}, nil, nil))
			require.NoError(t, j.Fail("HostRebooted", "m", false))
		}, apply.RolledBack, usage.ExitRolledBack},
		"failed and rolled back": {func(t *testing.T, j *journal.Journal) {
			step(t, j, 0)
			require.NoError(t, j.Begin(1, "boot-1", journal.Undo{}))
			require.NoError(t, j.Turn(1, journal.Cause{Step: upgrade.StepReloadUnits, Reason: "X"}, nil, nil))
			require.NoError(t, j.Fail("X", "m", true))
		}, apply.RolledBack, usage.ExitRolledBack},
		"failed, and something stays": {func(t *testing.T, j *journal.Journal) {
			step(t, j, 0)
			require.NoError(t, j.Begin(1, "boot-1", journal.Undo{}))
			require.NoError(t, j.Turn(1, journal.Cause{Step: upgrade.StepReloadUnits, Reason: "X"}, nil, []string{"etcd moved on"}))
			require.NoError(t, j.Fail("X", "m", false))
		}, apply.NotRolledBack, usage.ExitNotRolledBack},
		"stopped between two steps": {func(t *testing.T, j *journal.Journal) { step(t, j, 0) }, apply.Stopped, usage.ExitNotRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			x := &executor{}
			a := applier(t, x)
			x.run = func(id string) { tc.end(t, begin(t, a, id)) }
			op := accepted(t, a, "local-a")
			var shown journal.Record
			record, err := a.Follow(t.Context(), op.ID, func(l apply.Look) { shown = l.Record })
			require.NoError(t, err)
			assert.Equal(t, record.State, shown.State, "the end is shown")
			outcome := apply.OutcomeOf(record)
			assert.Equal(t, tc.state, outcome.State)
			assert.Equal(t, tc.code, outcome.State.Code())
			assert.Equal(t, record.Finished(), outcome.EndTime != nil)
		})
	}
}

// systemd lets go of a unit once the last process has ended that its executor left.
func TestAnExecutorThatIsDeadIsNotShownAsOneThatRuns(t *testing.T) {
	x, letGo := &executor{}, make(chan struct{})
	a := applier(t, x)
	x.run = func(id string) {
		require.NoError(t, begin(t, a, id).Begin(0, "boot-1", journal.Undo{}))
		x.dead.Store(true)
		<-letGo
	}
	op := accepted(t, a, "local-a")
	said, told := false, sync.OnceFunc(func() { close(letGo) })
	record, err := a.Follow(t.Context(), op.ID, func(l apply.Look) {
		if l.Dead {
			said = true
			told()
		}
	})
	require.NoError(t, err)
	assert.True(t, said)
	assert.Equal(t, apply.Stopped, apply.OutcomeOf(record).State)
}

// The view ends, the operation does not; the next view finds it and starts nothing.
func TestAViewThatEndsLeavesTheOperationToGoOn(t *testing.T) {
	x, goOn := &executor{}, make(chan struct{})
	a := applier(t, x)
	x.run = func(id string) {
		j := begin(t, a, id)
		step(t, j, 0)
		<-goOn
		step(t, j, 1)
		step(t, j, 2)
		require.NoError(t, j.Succeed())
	}
	op := accepted(t, a, "local-a")
	ctx, interrupt := context.WithCancel(t.Context())
	record, err := a.Follow(ctx, op.ID, func(r apply.Look) {
		if r.Next() == 1 {
			interrupt()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, record.Finished())

	underWay, err := a.UnderWay("local-a")
	require.NoError(t, err)
	require.NotNil(t, underWay)
	close(goOn)
	record, err = a.Follow(t.Context(), underWay.ID, func(apply.Look) {})
	require.NoError(t, err)
	assert.Equal(t, journal.Successful, record.State)
	starts := 0
	for _, call := range x.said() {
		if call == "start" {
			starts++
		}
	}
	assert.LessOrEqual(t, starts, 2, "a start of what runs, or has ended, answers with the outcome")
}

// Interrupted before its start, what was accepted is begun all the same.
func TestWhatWasAcceptedIsBegunThoughNobodyWaits(t *testing.T) {
	x := &executor{}
	a := applier(t, x)
	x.run = func(id string) { begin(t, a, id) }
	op := accepted(t, a, "local-a")
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := a.Follow(ctx, op.ID, func(apply.Look) {})
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { _, err := a.Store.Journal(op.ID); return err == nil }, time.Minute, time.Millisecond)
}

func TestAnOperationThatNeverBeganIsTakenBack(t *testing.T) {
	for name, x := range map[string]*executor{
		"its unit cannot be started":      {errs: map[string]error{"start": errors.New("no systemd")}},
		"its executor ends before it has": {run: func(string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			a := applier(t, x)
			op := accepted(t, a, "local-a")
			_, err := a.Follow(t.Context(), op.ID, func(apply.Look) { t.Error("there is nothing to show") })
			var never *apply.NotBegunError
			require.ErrorAs(t, err, &never)
			assert.ErrorContains(t, err, "journalctl -u refit-op-"+op.ID)
			underWay, err := a.UnderWay("local-b")
			require.NoError(t, err)
			assert.Nil(t, underWay, "nobody begins it later")
		})
	}
}
