package main

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

var poolsFirst = []verbs.Kind{verbs.Pool}

func newPause(c *command) *cobra.Command {
	return newPausing(c, &cobra.Command{
		Use:   "pause POOL... | machine/NAME... | --all",
		Short: "Stop new grants for pools, for machines, or for the whole namespace",
		Long: `Stops new grants: nothing more begins on the machines. What a host has accepted goes on to
its end; a place that a host has not accepted is taken back, and its node given back. With
--all the stop switch of the namespace (spec.stopped of its Ledger) halts every pool, and
machines without one, whatever they say themselves.

Exit codes: 0 paused, now or before; 1 a fault; 2 bad input, or no such pool; 3 refused.`,
		Example: "  kubectl refit pause workers\n  kubectl refit pause machine/worker-7 machine/worker-8\n  kubectl refit pause --all",
	}, (*verbs.Namespace).Pause, (*verbs.Namespace).Stop)
}

func newResume(c *command) *cobra.Command {
	return newPausing(c, &cobra.Command{
		Use:   "resume POOL... | machine/NAME... | --all",
		Short: "Let what was paused, aborted or stopped go on",
		Long: `Lets pools and machines go on that were paused or aborted, and says who else still holds
them. With --all the stop switch of the namespace is turned off; what is paused by itself
stays so.

Exit codes: 0 it goes on; 1 a fault; 2 bad input, or no such pool; 3 refused.`,
		Example: "  kubectl refit resume workers\n  kubectl refit resume machine/worker-7\n  kubectl refit resume --all",
	}, (*verbs.Namespace).Resume, (*verbs.Namespace).Go)
}

// newPausing is a verb for what is named, or for the whole namespace.
func newPausing(c *command, cmd *cobra.Command, some func(*verbs.Namespace, []client.Object) []verbs.Change, every func(*verbs.Namespace) verbs.Change) *cobra.Command {
	o := newChanger(c, cmd, false)
	all := false
	cmd.Flags().BoolVar(&all, "all", false, "The stop switch of the whole namespace")
	cmd.ValidArgsFunction = c.completes(verbs.Pool, verbs.Machine)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return usage.Errorf("name what to %s, or give --all, and not both (see %s --help)", cmd.Name(), cmd.CommandPath())
		}
		return o.run(cmd.Context(), args, func(n *verbs.Namespace, targets []client.Object) ([]verbs.Change, error) {
			if all {
				return []verbs.Change{every(n)}, nil
			}
			return some(n, targets), nil
		}, poolsFirst, verbs.Machine)
	}
	return cmd
}

// run is a verb from its names to its output.
func (o *changer) run(ctx context.Context, names []string, verb func(*verbs.Namespace, []client.Object) ([]verbs.Change, error), bare []verbs.Kind, others ...verbs.Kind) error {
	cl, n, err := o.begin(ctx)
	if err != nil {
		return err
	}
	targets, err := n.Select(names, bare, others...)
	if err != nil {
		return err
	}
	changes, err := verb(n, targets)
	if err != nil {
		return explained(err)
	}
	return o.carryOut(ctx, cl, changes)
}
