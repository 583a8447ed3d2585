package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/agent/store"
)

// The units that come with Refit.
const (
	agentUnit  = "refit-agent.service"
	resumeUnit = "refit-resume.service"
)

// Applier lets this host carry out what it grants itself. It needs root and systemd; a
// host without them is left as it is.
func (h *Host) Applier(ctx context.Context) (*apply.Applier, error) {
	if err := asRoot(os.Geteuid(), "may change this host"); err != nil {
		return nil, err
	}
	if _, err := h.units.Units.Status(ctx, agentUnit); err != nil {
		return nil, fmt.Errorf("operations are units of systemd: %w", err)
	}
	a := &apply.Applier{
		Executor: h.units, Store: store.New(h.paths.State),
		Hold: agent.HoldFile(filepath.Join(h.paths.Etc, "hold")), LockFile: filepath.Join(h.paths.Run, "apply.lock"),
	}
	var err error
	if a.MachineID, err = readID(h.paths.MachineID); err != nil {
		return nil, err
	}
	a.BootID, err = readID(h.paths.BootID)
	return a, err
}

// Operations is the record of what ran on this host, which is private to root: anybody else
// would be told that nothing ever did.
func (h *Host) Operations() (*store.Store, error) {
	if err := asRoot(os.Geteuid(), "can read what Refit has done on this host"); err != nil {
		return nil, err
	}
	return store.New(h.paths.State), nil
}

// asRoot says who can do what somebody else has asked for.
func asRoot(euid int, what string) error {
	if euid == 0 {
		return nil
	}
	return fmt.Errorf("only root %s: run the command as root, such as with sudo", what)
}

// WorksOn says whether an executor works on an operation; where nobody can be asked, it is
// taken to.
func (h *Host) WorksOn(ctx context.Context, id string) bool {
	alive, err := h.units.Alive(ctx, id)
	return alive || err != nil
}

// Situation adds to a draft what the units of this host say.
func (h *Host) Situation(ctx context.Context, draft Draft, drained bool) (apply.Situation, error) {
	s := apply.Situation{Machine: draft.Machine, Facts: draft.Facts, Plan: draft.Plan, Drained: drained}
	agent, err := h.units.Units.Status(ctx, agentUnit)
	if err != nil {
		return s, fmt.Errorf("asking whether an agent runs here: %w", err)
	}
	resume, err := h.units.Units.Status(ctx, resumeUnit)
	if err != nil {
		return s, fmt.Errorf("asking for %s: %w", resumeUnit, err)
	}
	byHand, err := agentRuns(h.paths)
	if err != nil {
		return s, err
	}
	s.AgentRuns = byHand || agent.Running() || agent.ActiveState == "active"
	s.Resumes = resume.FileState == "enabled"
	return s, nil
}

// Bound says whether a file binds this host to a cluster.
func Bound(config string) bool {
	_, err := os.Stat(config)
	return !errors.Is(err, fs.ErrNotExist)
}
