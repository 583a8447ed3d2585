package main

import (
	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/cli/verbs"
)

var machinesOnly = []verbs.Kind{verbs.Machine}

func newNext(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "next MACHINE...",
		Short: "Name the machines that go now, in pools with strategy Manual",
		Long: `Lets machines go whose pool leaves it to a person who is next (spec.strategy.type Manual).
The word is for the spec as it is: once that changes, the machine has to be named again.
All other gates have their say as ever: kubectl refit why MACHINE shows them.

Exit codes: 0 named; 1 a fault; 2 bad input, or no such machine; 3 refused: the pool is not Manual.`,
		Example:           "  kubectl refit next worker-7",
		Args:              atLeastOne,
		ValidArgsFunction: c.completes(verbs.Machine),
	}
	o := newChanger(c, cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.run(cmd.Context(), args, (*verbs.Namespace).Next, machinesOnly)
	}
	return cmd
}
