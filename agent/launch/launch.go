package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Time limits: a probe that hangs is ended, and tried again later.
const (
	factsTimeout      = 3 * time.Minute
	candidatesTimeout = 15 * time.Minute
	stageTimeout      = 2 * time.Hour
	stopTimeout       = 30 * time.Second
)

// exitRefused is the executor's word that a plan cannot be staged, and why is in its output.
const exitRefused = 3

// resumeUnit re-enters an open operation at boot.
const resumeUnit = "refit-resume.service"

// Units is the part of systemd that is needed to start the executor.
type Units interface {
	StartTransient(ctx context.Context, unit systemd.TransientUnit) error
	Wait(ctx context.Context, name string) (systemd.Exit, error)
	Release(ctx context.Context, name string) error
	Stop(ctx context.Context, unit string) error
	Status(ctx context.Context, unit string) (systemd.Status, error)
}

// Executor starts the executor of this host.
type Executor struct {
	Units Units
	// Program is the absolute path of refit-executor.
	Program string
	// Name tells the probes of one user of this package from those of another; "" is the agent.
	Name string
	// RunDir is where requests and results are exchanged, such as /run/refit.
	RunDir string
	// Indexes asks with the facts for what the host's package indexes offer.
	Indexes bool
}

// StageResult is what staging found out.
type StageResult struct {
	Findings []upgrade.Finding `json:"findings,omitempty"`
	// Refused says that a finding blocks the plan.
	Refused bool `json:"-"`
	// Duration of the staging.
	Duration time.Duration `json:"-"`
}

// Error is a program run that ended without a result, and did not say why.
type Error struct {
	Unit string
	Exit systemd.Exit
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s ended with %s (exit code %d); see: journalctl -u %s", e.Unit, e.Exit.Result, e.Exit.Code, e.Unit)
}

// Facts probes the host; packages are looked at besides those that Refit always looks at.
func (x *Executor) Facts(ctx context.Context, packages []string) (upgrade.Facts, error) {
	args := []string{"facts", "-o", "json"}
	for _, name := range packages {
		args = append(args, "--package", name)
	}
	if x.Indexes {
		args = append(args, "--indexes")
	}
	var facts upgrade.Facts
	_, err := x.probe(ctx, probe{name: "facts", args: args, timeout: factsTimeout, into: &facts})
	return facts, err
}

// Candidates reads what repositories offer, without touching the host's own package lists.
func (x *Executor) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	var candidates []upgrade.Candidate
	args := []string{"candidates", "--request", x.requestFile("candidates")}
	_, err := x.probe(ctx, probe{name: "candidates", args: args, request: request, timeout: candidatesTimeout, into: &candidates})
	return candidates, err
}

// Stage brings everything that a plan needs onto the host and simulates its
// transactions. It disturbs nothing. A refusal is a result, not an error.
func (x *Executor) Stage(ctx context.Context, plan upgrade.Plan) (StageResult, error) {
	start := time.Now()
	var result StageResult
	args := []string{"stage", "--plan", x.requestFile("stage")}
	exit, err := x.probe(ctx, probe{name: "stage", args: args, request: plan, timeout: stageTimeout, into: &result, refusal: exitRefused})
	result.Refused, result.Duration = err == nil && exit.Code == exitRefused, time.Since(start)
	return result, err
}

type probe struct {
	name    string
	args    []string
	request any // goes into its request file, unless nil
	timeout time.Duration
	into    any
	refusal int // an exit code that has a result too; 0: none
}

func (x *Executor) probe(ctx context.Context, p probe) (systemd.Exit, error) {
	unit, output := x.probeName(p.name), x.file(p.name+".json")
	if err := x.makeRoom(ctx, unit, output); err != nil {
		return systemd.Exit{}, err
	}
	if err := x.writeRequest(p); err != nil {
		return systemd.Exit{}, err
	}
	err := x.Units.StartTransient(ctx, systemd.TransientUnit{
		Name: unit, Description: "Refit: " + p.name, Argv: x.argv(append(p.args, "--output", output)...),
		StopTimeout: stopTimeout, RuntimeLimit: p.timeout,
	})
	if err != nil {
		return systemd.Exit{}, fmt.Errorf("starting the %s probe: %w", p.name, err)
	}
	exit, err := x.Units.Wait(ctx, unit)
	if err != nil {
		return exit, errors.Join(fmt.Errorf("waiting for the %s probe: %w", p.name, err), x.abandon(ctx, unit))
	}
	defer func() { _ = x.Units.Release(ctx, unit) }() // a unit that stays is replaced by the next probe
	if !exit.Success() && (p.refusal == 0 || exit.Code != p.refusal) {
		return exit, failureOf(output, &Error{Unit: systemd.ServiceName(unit), Exit: exit})
	}
	return exit, readResult(output, p.into)
}

// makeRoom waits for a probe that an earlier agent started: two would write one file.
func (x *Executor) makeRoom(ctx context.Context, unit, output string) error {
	status, err := x.Units.Status(ctx, systemd.ServiceName(unit))
	if err != nil {
		return fmt.Errorf("looking for an earlier probe: %w", err)
	}
	if status.Running() {
		if err := x.Units.Stop(ctx, systemd.ServiceName(unit)); err != nil {
			return fmt.Errorf("ending an earlier probe: %w", err)
		}
	}
	if err := files.PrivateDir(x.RunDir); err != nil {
		return fmt.Errorf("making %s: %w", x.RunDir, err)
	}
	return files.Remove(output)
}

// abandon ends a probe whose result nobody waits for any more.
func (x *Executor) abandon(ctx context.Context, unit string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stopTimeout)
	defer cancel()
	if err := x.Units.Stop(ctx, systemd.ServiceName(unit)); err != nil {
		return fmt.Errorf("ending an abandoned probe: %w", err)
	}
	return x.Units.Release(ctx, unit)
}

func (x *Executor) requestFile(name string) string { return x.file(name + "-request.json") }

// writeRequest comes after systemd has answered: a host without it is left as it is.
func (x *Executor) writeRequest(p probe) error {
	if p.request == nil {
		return nil
	}
	text, err := json.Marshal(p.request)
	if err != nil {
		return fmt.Errorf("encoding the %s request: %w", p.name, err)
	}
	return files.WriteAtomic(x.requestFile(p.name), text, 0o600)
}

// failureOf is the reason that the executor left in place of a result.
func failureOf(output string, ended error) error {
	var left upgrade.FailureFile
	if err := readResult(output, &left); err != nil || left.Failure == nil {
		return ended
	}
	if left.Failure.Reason == "" {
		return fmt.Errorf("%s (%w)", left.Failure.Message, ended)
	}
	return fmt.Errorf("%w (%w)", left.Failure, ended)
}

func readResult(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the result of a probe: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the result of a probe, %s: %w", path, err)
	}
	return nil
}

func (x *Executor) argv(args ...string) []string { return append([]string{x.Program}, args...) }

func (x *Executor) probeName(probe string) string {
	if x.Name == "" {
		return "refit-probe-" + probe
	}
	return "refit-probe-" + x.Name + "-" + probe
}

func (x *Executor) file(name string) string {
	if x.Name != "" {
		name = x.Name + "-" + name
	}
	return filepath.Join(x.RunDir, name)
}

// OperationUnit is the unit that carries an operation out.
func OperationUnit(id string) string { return "refit-op-" + id + ".service" }

// Start starts the unit of an accepted operation. One that runs is left alone.
func (x *Executor) Start(ctx context.Context, id string) error {
	err := x.Units.StartTransient(ctx, systemd.TransientUnit{
		Name: OperationUnit(id), Description: "Refit: operation " + id,
		Argv: x.argv("run", "--operation", id),
	})
	if err != nil && !errors.Is(err, systemd.ErrRunning) {
		return fmt.Errorf("starting operation %s: %w", id, err)
	}
	return nil
}

// Wait returns when no unit works on the operation any more: its own, or the one
// that resumes operations at boot. How it went is in the journal, never in an exit code.
func (x *Executor) Wait(ctx context.Context, id string) error {
	for _, unit := range []string{OperationUnit(id), resumeUnit} {
		status, err := x.Units.Status(ctx, unit)
		if err != nil {
			return fmt.Errorf("looking for operation %s: %w", id, err)
		}
		if !status.Running() {
			continue
		}
		if _, err := x.Units.Wait(ctx, unit); err != nil && !errors.Is(err, systemd.ErrGone) {
			return fmt.Errorf("waiting for operation %s: %w", id, err)
		}
	}
	return nil
}

// Running says whether some unit works on the operation.
func (x *Executor) Running(ctx context.Context, id string) (bool, error) {
	for _, unit := range []string{OperationUnit(id), resumeUnit} {
		status, err := x.Units.Status(ctx, unit)
		if err != nil {
			return false, fmt.Errorf("looking for operation %s: %w", id, err)
		}
		if status.Running() {
			return true, nil
		}
	}
	return false, nil
}

// Alive says whether some executor works on the operation. Its unit may be there for
// longer: systemd lets go of it only once every process that it left has ended.
func (x *Executor) Alive(ctx context.Context, id string) (bool, error) {
	for _, unit := range []string{OperationUnit(id), resumeUnit} {
		status, err := x.Units.Status(ctx, unit)
		if err != nil {
			return false, fmt.Errorf("looking for operation %s: %w", id, err)
		}
		if status.Alive() {
			return true, nil
		}
	}
	return false, nil
}

// Release forgets the unit of an operation that has ended.
func (x *Executor) Release(ctx context.Context, id string) error {
	return x.Units.Release(ctx, OperationUnit(id))
}
