package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/health"
)

// AgentUnit is the unit of Refit's own agent.
const AgentUnit = "refit-agent.service"

// agentComesUp bounds how long a new agent may take until it is heard.
const agentComesUp = 3 * time.Minute

// silent is the reason of an agent that is well as far as the host can see, and that no API server has answered.
const silent = "AgentSilent"

// restartAgent starts Refit's own new agent and judges it; the executor that does so is the old one, which goes on
// whatever is on disk, and takes the package back where the agent does not come up. An API server that does not
// answer is no reason for that: it would not answer the old agent either.
func restartAgent(ctx context.Context, r Run) (string, error) {
	bound, cancel := context.WithTimeout(ctx, agentBound(ctx))
	defer cancel()
	restartErr := r.Host.Units.Restart(bound, AgentUnit) // which may come up by its own Restart= all the same
	err := await(bound, r.Poll, func(ctx context.Context) error {
		if err := works(ctx, r.Host, AgentUnit); err != nil || !r.Expect.Agent {
			return err
		}
		return agentIsWell(r.Host)
	})
	var why *Failure
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("waiting for %s: %w", AgentUnit, ctx.Err())
	case err == nil:
		return "", nil
	case errors.As(err, &why) && why.Reason == silent:
		return why.Message, nil
	case restartErr != nil:
		return "", errors.Join(err, fmt.Errorf("restarting %s: %w", AgentUnit, restartErr))
	}
	return "", err
}

// agentBound leaves time to say what is wrong before the step ends.
func agentBound(ctx context.Context) time.Duration {
	if deadline, bounded := ctx.Deadline(); bounded {
		return min(agentComesUp, time.Until(deadline)/2)
	}
	return agentComesUp
}

// agentIsWell: the program that runs is the one on disk, its executor answers, and the API server takes what it says.
func agentIsWell(h *Host) error {
	want, err := h.Files.Digest(health.Program)
	if err != nil {
		return fmt.Errorf("reading the agent on disk: %w", err)
	}
	content, _, err := h.Files.Read(health.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading what the agent says of itself: %w", err)
	}
	said, err := health.Decode(content)
	switch {
	case len(content) == 0 || err != nil || said.Program != want:
		return fail("AgentNotUp", "the new refit-agent does not come up; `journalctl -u %s` says why", AgentUnit)
	case said.ExecutorFault != "":
		return fail("ExecutorUnhealthy", "the new refit-executor does not say what runs on this host: %s", said.ExecutorFault)
	case !said.ExecutorAnswers:
		return fail("ExecutorUnhealthy", "the new refit-executor has not said what runs on this host")
	case said.Refused != "":
		return fail("AgentRefused", "the API server does not take what the new refit-agent %s reports: %s", said.Version, said.Refused)
	case !said.Reported:
		return fail(silent, "refit-agent %s runs and its executor answers; its API server did not in %s", said.Version, strings.TrimSuffix(agentComesUp.String(), "0s"))
	}
	return nil
}
