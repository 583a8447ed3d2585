package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/refit-dev/refit/agent"
	"github.com/refit-dev/refit/agent/host/command"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/agent/launch"
	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Host answers a person who asks this host something, without a cluster.
type Host struct {
	units *launch.Executor
	local *launch.Local
}

// NewHost finds the executor.
func NewHost(config agent.Config) (*Host, error) {
	program, err := ExecutorPath(config)
	if err != nil {
		return nil, err
	}
	return &Host{
		units: &launch.Executor{Units: systemd.New(), Program: program, Name: "cli", RunDir: Paths{}.withDefaults().Run},
		local: &launch.Local{Program: program, Runner: command.Exec{}},
	}, nil
}

// Facts probes the host the way the agent does; where there is no systemd, or no right to use it, as a child.
func (h *Host) Facts(ctx context.Context, packages []string) (upgrade.Facts, error) {
	if os.Geteuid() == 0 {
		facts, err := h.units.Facts(ctx, packages)
		if !errors.Is(err, systemd.ErrUnavailable) {
			return facts, err
		}
	}
	return h.local.Facts(ctx, packages)
}

// Candidates reads what repositories offer.
func (h *Host) Candidates(ctx context.Context, request upgrade.CandidateRequest) ([]upgrade.Candidate, error) {
	if os.Geteuid() == 0 {
		candidates, err := h.units.Candidates(ctx, request)
		if !errors.Is(err, systemd.ErrUnavailable) {
			return candidates, err
		}
	}
	return h.local.Candidates(ctx, request)
}

// Plan is what would change if the file, - for standard input, were this host's Machine.
// Nothing is staged, nothing is changed.
func (h *Host) Plan(ctx context.Context, file string, stdin io.Reader) (upgrade.Plan, error) {
	machine, err := readMachine(file, stdin)
	if err != nil {
		return upgrade.Plan{}, err
	}
	facts, err := h.Facts(ctx, planning.PackageNames(machine.Spec))
	if err != nil {
		return upgrade.Plan{}, fmt.Errorf("probing the host: %w", err)
	}
	return planning.Draft(ctx, h, upgrade.PlanInput{
		Machine: machine.Name, Spec: machine.Spec, Assignment: standalone(machine.Spec),
		Facts: facts, Record: store.New(store.DefaultDir).Record(), Standalone: true, Now: time.Now(),
	})
}

// standalone is the assignment that a host gives itself: the whole wish in one hop.
func standalone(spec v1alpha1.MachineSpec) v1alpha1.Assignment {
	assignment := v1alpha1.Assignment{ID: "standalone", Type: v1alpha1.OperationUpgrade, Target: v1alpha1.Target{OS: true}}
	if spec.Versions != nil {
		assignment.Target.Versions = *spec.Versions
	}
	if assignment.Target.ControlPlane != "" {
		assignment.KubeadmRole = v1alpha1.KubeadmFirst
	}
	return assignment
}

func readMachine(file string, stdin io.Reader) (*v1alpha1.Machine, error) {
	text, err := readFile(file, stdin)
	if err != nil {
		return nil, fmt.Errorf("reading a Machine: %w", err)
	}
	if file == "-" {
		file = "standard input"
	}
	return decodeMachine(file, text)
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file) //nolint:wrapcheck // the caller says what it reads
}
