package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/refit-dev/refit/agent/health"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// agentWellness is one of an agent whose program has some content, and how the executor reads it.
func agentWellness(t *testing.T) (w *wellness, read func() health.Report) {
	t.Helper()
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	require.NoError(t, os.WriteFile(self, []byte("program"), 0o700))
	return running(t.Context(), dir, self), func() health.Report {
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(health.File)))
		require.NoError(t, err)
		r, err := health.Decode(data)
		require.NoError(t, err)
		return r
	}
}

func TestAnAgentSaysWhichProgramItIs(t *testing.T) {
	_, read := agentWellness(t)
	assert.Equal(t, digestOf(t, "program"), read().Program)
	assert.False(t, read().Reported)
}

func TestOnlyAnAnswerOfTheAPIServerSaysSomethingOfAnAgent(t *testing.T) {
	machines := schema.GroupResource{Group: "refit.dev", Resource: "machines"}
	w, read := agentWellness(t)
	for _, nothing := range []error{
		errors.New("the stream ended after 3s"), context.Canceled, context.DeadlineExceeded,
		apierrors.NewServiceUnavailable("starting"), apierrors.NewConflict(machines, "w1", errors.New("changed")),
	} {
		w.heard(nothing)
		assert.Empty(t, read().Refused, nothing.Error())
	}
	w.heard(apierrors.NewForbidden(machines, "w1", errors.New("no role")))
	assert.Contains(t, read().Refused, "forbidden")
	w.heard(nil)
	assert.True(t, read().Reported)
	assert.Empty(t, read().Refused)
	w.heard(apierrors.NewUnauthorized("expired"))
	assert.False(t, read().Reported)
}

func TestAnExecutorIsAskedUntilItAnswers(t *testing.T) {
	w, read := agentWellness(t)
	asked := 0
	w.tryExecutor(t.Context(), func(context.Context, []string) (upgrade.Facts, error) {
		if asked++; asked < 3 {
			return upgrade.Facts{}, errors.New("exec format error")
		}
		assert.Equal(t, "exec format error", read().ExecutorFault)
		return upgrade.Facts{}, nil
	}, time.Millisecond)
	assert.True(t, read().ExecutorAnswers)
	assert.Empty(t, read().ExecutorFault)
}

func digestOf(t *testing.T, content string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
