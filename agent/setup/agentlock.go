package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
)

// lockRetry and lockPatience: whoever asks whether an agent runs has the lock for a moment.
const (
	lockRetry    = 100 * time.Millisecond
	lockPatience = 5 * time.Second
)

func agentLock(paths Paths) string { return filepath.Join(paths.Run, "agent.lock") }

// alone keeps a second agent off the host: the two would write one state.
func alone(ctx context.Context, paths Paths) (release func(), err error) {
	deadline := time.Now().Add(lockPatience)
	for {
		release, err := files.Lock(agentLock(paths))
		if !errors.Is(err, files.ErrLocked) || time.Now().After(deadline) {
			if errors.Is(err, files.ErrLocked) {
				err = fmt.Errorf("an agent runs on this host already (systemctl status refit-agent, or pgrep refit-agent): %w", err)
			}
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another agent to end: %w", context.Cause(ctx))
		case <-time.After(lockRetry):
		}
	}
}

// agentRuns says whether an agent has the lock, however it was started.
func agentRuns(paths Paths) (bool, error) {
	release, err := files.Lock(agentLock(paths))
	if errors.Is(err, files.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether an agent runs here: %w", err)
	}
	release()
	return false, nil
}
