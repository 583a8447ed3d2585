package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/cli/simulate"
	"github.com/refit-dev/refit/coordinator/simulation"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/usage"
)

type simulateOptions struct {
	*command
	files  []string
	output string
}

func newSimulate(c *command) *cobra.Command {
	o := &simulateOptions{command: c}
	cmd := &cobra.Command{
		Use:   "simulate -f SCENARIO.yaml",
		Short: "Play a whole rollout on paper, and say who goes when and why",
		Long: `Plays a rollout by a simulated clock: the coordinator's own order, gates and ledger work on
the objects of the files, and hosts, drains and whatever else happens are as a document of
kind Simulation says. No cluster is asked. The same files always give the same transcript.

Files hold Machines, MachineDeployments, MachineDisruptionBudgets, Nodes, Pods and
PodDisruptionBudgets, as kubectl get -o yaml prints them, and one Simulation: durations of
the phases, events, and machines that are made up. docs/simulate.md describes it.

Exit codes: 0 every machine in service is what its spec wants; 2 bad input; 3 the rollout
stood still, or was not at its end when the simulated time was: what is printed last says
which machines wait for what.`,
		Example: "  kubectl refit simulate -f scenario.yaml\n  kubectl get machines,machd,mdb,nodes,pods,pdb -A -o yaml > fleet.yaml && kubectl refit simulate -f fleet.yaml -f wish.yaml -o json",
		Args:    usage.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "File of the scenario; - is the standard input (may be repeated)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "Format to print in: table, wide or json (one object a line)")
	return cmd
}

func (o *simulateOptions) run(ctx context.Context) error {
	if err := usage.OneOf("output", o.output, "table", "wide", "json"); err != nil {
		return err
	}
	if len(o.files) == 0 {
		return usage.Errorf("there is no scenario: give one with -f")
	}
	if n := len(slices.DeleteFunc(slices.Clone(o.files), func(f string) bool { return f != "-" })); n > 1 {
		return usage.Errorf("the standard input can be read once: give -f - once")
	}
	scenario, err := simulate.Read(o.files, o.namespace(), o.in)
	if err != nil {
		return badScenario(err)
	}
	p := &simulate.Printer{Out: o.out, Format: o.output}
	e, err := simulation.New(scenario, p.Entry)
	if err != nil {
		return badScenario(err)
	}
	p.Start = e.Start()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what a large fleet leaves behind is much, and what it keeps is little
	sum, err := e.Run(ctx)
	if err != nil {
		return badScenario(err)
	}
	p.Summary(sum, e.Now())
	if err := p.Err(); err != nil {
		return fmt.Errorf("printing the transcript: %w", err)
	}
	return notArrived(sum)
}

func badScenario(err error) error {
	if simulate.Invalid(err) {
		return usage.Errorf("%w", err)
	}
	return err
}

func notArrived(sum simulation.Summary) error {
	switch sum.Outcome {
	case simulation.StoodStill:
		return refused{fmt.Sprintf("the rollout stands still: %s not there yet; %s", whoWaits(sum), firstOf(sum))}
	case simulation.TimedOut:
		return refused{fmt.Sprintf("the simulated time is over: %s not there yet; give more with spec.until of the Simulation, or see what they wait for", whoWaits(sum))}
	case simulation.Completed:
	}
	return nil
}

// whoWaits counts what has not arrived: machines, or MachineDeployments where all machines have.
func whoWaits(sum simulation.Summary) string {
	if len(sum.Waiting) > 0 && sum.Waiting[0].MachineDeployment != "" {
		return status.Count(len(sum.Waiting), "MachineDeployment")
	}
	return status.Count(len(sum.Waiting), "machine")
}

func firstOf(sum simulation.Summary) string {
	if len(sum.Waiting) == 0 {
		return "see the transcript"
	}
	w := &sum.Waiting[0]
	return fmt.Sprintf("%s: %s", w.Name(), w.Message)
}
