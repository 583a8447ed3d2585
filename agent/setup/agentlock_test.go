package setup

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/refit-dev/refit/agent/host/files"
)

func TestAnAgentIsNoticedHoweverItWasStarted(t *testing.T) {
	paths := PathsUnder(t.TempDir())
	runs, err := agentRuns(paths)
	require.NoError(t, err)
	assert.False(t, runs)

	release, err := alone(t.Context(), paths)
	require.NoError(t, err)
	runs, err = agentRuns(paths)
	require.NoError(t, err)
	assert.True(t, runs)

	release()
	runs, err = agentRuns(paths)
	require.NoError(t, err)
	assert.False(t, runs, "the lock goes with its process")
}

// Whoever asks has the lock for a moment: an agent that starts just then waits for it.
func TestASecondAgentDoesNotStartBesideTheFirst(t *testing.T) {
	paths := PathsUnder(t.TempDir())
	release, err := files.Lock(agentLock(paths))
	require.NoError(t, err)
	time.AfterFunc(3*lockRetry, release)
	second, err := alone(t.Context(), paths)
	require.NoError(t, err)
	defer second()
	ctx, stop := context.WithTimeout(t.Context(), 3*lockRetry)
	defer stop()
	_, err = alone(ctx, paths)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
