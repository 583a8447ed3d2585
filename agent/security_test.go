package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// mirror is an executor that looks for security updates.
type mirror struct {
	Executor
	mu    sync.Mutex
	looks int
	err   error
}

func (m *mirror) Candidates(_ context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if request.Security {
		m.looks++
	}
	return []upgrade.Candidate{{Name: "openssl", From: "1", Version: "2"}, {Name: "kernel-31", Version: "1"}}, m.err
}

func (m *mirror) Facts(context.Context, []string) (upgrade.Facts, error) { return upgrade.Facts{}, nil }
func (m *mirror) Stage(context.Context, upgrade.Plan) (launch.StageResult, error) {
	return launch.StageResult{}, nil
}

func patching(t *testing.T, dir string, m *mirror) *Agent {
	t.Helper()
	a := New(Deps{Executor: m, Store: store.New(dir)})
	a.learn(upgrade.Facts{}, nil)
	a.machine = &v1alpha1.Machine{}
	a.machine.Spec.OS = &v1alpha1.OSSpec{SecurityUpdates: v1alpha1.SecurityUpdatesApply}
	return a
}

// look lets a look that has begun come to its end.
func look(t *testing.T, a *Agent) {
	t.Helper()
	a.lookForUpdates(t.Context())
	require.True(t, a.security.running)
	(<-a.results)()
}

func TestSecurityUpdatesAreLookedForOnceADayAndNotByAllAtOnce(t *testing.T) {
	m := &mirror{}
	first := map[int64]bool{}
	for range 20 {
		a := patching(t, t.TempDir(), m)
		a.lookForUpdates(t.Context())
		assert.False(t, a.security.running)
		wait := a.security.due.Sub(a.now())
		assert.LessOrEqual(t, wait, time.Hour)
		first[int64(wait/time.Second)] = true
	}
	assert.Greater(t, len(first), 10, "spread over the hour")
	assert.Zero(t, m.looks)

	dir := t.TempDir()
	a := patching(t, dir, m)
	a.security.due = a.now()
	look(t, a)
	assert.Equal(t, 1, m.looks)
	assert.Equal(t, []string{"openssl"}, a.wantedPackages(), "the facts say whether it is installed by then")
	wait := a.security.due.Sub(a.now())
	assert.True(t, wait > 17*time.Hour && wait < 31*time.Hour, wait)
	a.lookForUpdates(t.Context())
	assert.False(t, a.security.running)

	again := patching(t, dir, m)
	again.lookForUpdates(t.Context())
	require.NotNil(t, again.security.known, "an agent that starts again knows what was found")
	assert.Greater(t, again.security.due.Sub(again.now()), 17*time.Hour, "and asks no sooner")
}

func TestALookThatFailsIsTriedAgainEverMoreRarelyAndForgetsNothing(t *testing.T) {
	m := &mirror{}
	a := patching(t, t.TempDir(), m)
	a.security.due = a.now()
	look(t, a)
	m.err = errors.New("the mirror is away")
	var pauses []time.Duration
	for range 8 {
		a.security.due = a.now()
		look(t, a)
		pauses = append(pauses, a.security.due.Sub(a.now()))
	}
	assert.Greater(t, pauses[0], time.Minute)
	assert.Greater(t, pauses[7], time.Hour)
	require.NotNil(t, a.securityReport())
	assert.True(t, a.securityReport().Known)
	assert.Len(t, a.securityReport().Updates, 2)
}

func TestNobodyLooksWhereSpecDoesNotAskOrWorkGoesOn(t *testing.T) {
	m := &mirror{}
	a := patching(t, t.TempDir(), m)
	a.security.due = a.now()
	a.work.op = &upgrade.Operation{ID: "g1"}
	a.lookForUpdates(t.Context())
	assert.False(t, a.security.running)
	a.work.op = nil
	a.machine.Spec.OS.SecurityUpdates = v1alpha1.SecurityUpdatesNone
	a.lookForUpdates(t.Context())
	assert.False(t, a.security.running)
	assert.Empty(t, a.wantedPackages())
}
