package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// waiting is an agent with a frozen plan that has no grant yet, and looks counted.
func waiting(holder *upgrade.LockFacts) (a *Agent, looks *int) {
	looks = new(int)
	a = New(Deps{PackageLock: func() (*upgrade.LockFacts, error) { *looks++; return holder, nil }})
	a.machine = &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Assignment: &v1alpha1.Assignment{ID: "1-a"}}}
	a.planned = planned{assignmentID: "1-a", frozen: &store.FrozenPlan{}}
	return a, looks
}

var unattended = &upgrade.LockFacts{PID: 2448, Command: "unattended-upgr", Path: "/var/lib/dpkg/lock-frontend"}

func TestALockIsLookedAtOnlyWhileAPlanWaitsForItsGrant(t *testing.T) {
	for name, change := range map[string]func(a *Agent){
		"no assignment":             func(a *Agent) { a.machine.Status.Assignment = nil },
		"no plan yet":               func(a *Agent) { a.planned.frozen = nil },
		"a plan for another":        func(a *Agent) { a.planned.assignmentID = "0-z" },
		"work of ours is under way": func(a *Agent) { a.work.op = &upgrade.Operation{} },
		"the plan was carried out": func(a *Agent) {
			a.work.op, a.work.corrupt = &upgrade.Operation{Plan: upgrade.Plan{AssignmentID: "1-a"}}, errors.New("x")
		},
		"a Machine that is not there": func(a *Agent) { a.machine = nil },
	} {
		t.Run(name, func(t *testing.T) {
			a, looks := waiting(unattended)
			change(a)
			a.lookAtLock(t.Context())
			assert.Zero(t, *looks)
			assert.Nil(t, a.lock.holder)
			assert.Zero(t, a.wake, "and nobody is woken for it")
		})
	}
}

func TestALockThatIsHeldIsLookedAtEverMoreRarely(t *testing.T) {
	a, _ := waiting(unattended)
	var pauses []time.Duration
	for range 10 {
		a.wake = time.Time{}
		a.lookAtLock(t.Context())
		pauses = append(pauses, time.Until(a.wake))
		again := a.wake
		a.wake = time.Time{}
		a.lookAtLock(t.Context())
		assert.Equal(t, again, a.wake, "a look for another reason in between changes nothing")
		a.lock.next = a.now()
	}
	assert.Less(t, pauses[0], 10*time.Second)
	assert.Greater(t, pauses[9], 25*time.Second)
	assert.LessOrEqual(t, pauses[9], 2*lockLook)
}

// watched is one that waits, whose lock is watched: what was asked for, and what each was given.
func watched(holder *upgrade.LockFacts) (a *Agent, asked *[]upgrade.LockFacts, given *[]chan struct{}, contexts *[]context.Context) {
	a, _ = waiting(holder)
	asked, given, contexts = new([]upgrade.LockFacts), new([]chan struct{}), new([]context.Context)
	a.LockReleased = func(ctx context.Context, seen upgrade.LockFacts) (<-chan struct{}, error) {
		*asked, *given, *contexts = append(*asked, seen), append(*given, make(chan struct{})), append(*contexts, ctx)
		return (*given)[len(*given)-1], nil
	}
	return a, asked, given, contexts
}

func TestALockThatIsHeldIsWatchedAndOtherwiseLookedAtRarely(t *testing.T) {
	a, asked, given, contexts := watched(unattended)
	for range 3 {
		a.wake = time.Time{}
		a.lookAtLock(t.Context())
		assert.Greater(t, time.Until(a.wake), lockLook/2)
	}
	assert.Equal(t, []upgrade.LockFacts{*unattended}, *asked, "one is watched once")

	close((*given)[0])
	require.True(t, a.next(t.Context(), nil), "the release wakes the agent")
	require.Error(t, (*contexts)[0].Err(), "nothing of the old watch is left")
	a.lookAtLock(t.Context()) // the same process holds it again
	require.Len(t, *asked, 2)

	other := &upgrade.LockFacts{PID: 9, Command: "apt", Path: unattended.Path}
	a.PackageLock = func() (*upgrade.LockFacts, error) { return other, nil }
	a.lookAtLock(t.Context())
	require.Error(t, (*contexts)[1].Err())
	require.Len(t, *asked, 3, "another holder is another watch")
	assert.Equal(t, *other, (*asked)[2])

	a.PackageLock = func() (*upgrade.LockFacts, error) { return nil, nil }
	a.lookAtLock(t.Context())
	assert.Error(t, (*contexts)[2].Err())
	assert.Nil(t, a.lock.released, "what is free is not watched")
}

func TestNothingIsWatchedOnceNoPlanWaits(t *testing.T) {
	a, asked, _, contexts := watched(unattended)
	a.lookAtLock(t.Context())
	a.planned.frozen = nil
	a.wake = time.Time{}
	a.lookAtLock(t.Context())
	require.Error(t, (*contexts)[0].Err())
	assert.Nil(t, a.lock.released)
	a.lookAtLock(t.Context())
	assert.Len(t, *asked, 1)
	assert.Zero(t, a.wake)
}

func TestALockThatCannotBeWatchedIsLookedAtMoreOften(t *testing.T) {
	a, _, _, _ := watched(nil)
	a.lookAtLock(t.Context())
	a.PackageLock = func() (*upgrade.LockFacts, error) { return unattended, nil }
	a.LockReleased = func(context.Context, upgrade.LockFacts) (<-chan struct{}, error) {
		return nil, errors.New("no watches left")
	}
	a.wake = time.Time{}
	a.lookAtLock(t.Context())
	assert.Less(t, time.Until(a.wake), lockLook/2)
}

func TestALockIsToldAtOnceUnlessTheNodeIsBeingDrainedForThePlan(t *testing.T) {
	a, _ := waiting(unattended)
	a.lookAtLock(t.Context())
	assert.NotNil(t, a.lockReport())

	a, _ = waiting(unattended)
	a.machine.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionFalse}}
	a.lookAtLock(t.Context())
	assert.Nil(t, a.lockReport(), "a node is not given back for what takes seconds")
	assert.NotNil(t, a.lock.holder, "but no grant is accepted")
	a.lock.since = a.now().Add(-lockPatience)
	a.lookAtLock(t.Context())
	assert.Equal(t, *unattended, a.lockReport().Holder)
}

func TestALockThatCannotBeLookedAtHoldsNothingBack(t *testing.T) {
	a, _ := waiting(nil)
	a.PackageLock = func() (*upgrade.LockFacts, error) { return nil, errors.New("permission denied") }
	a.lookAtLock(t.Context())
	assert.Nil(t, a.lock.holder)
	assert.Nil(t, a.lockReport())
}
