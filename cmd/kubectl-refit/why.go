package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

func newWhy(c *command) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "why MACHINE",
		Short: "Say what a machine waits for: every gate, who is in flight, what to type",
		Long: `Reads what the coordinator reads and asks the gates that it asks, in its order: the first
that says no is what holds the machine. Shows since when it waits, which machines hold a place
meanwhile, and the command that lets it go on, where there is one. Nothing is changed. It also
works while no coordinator runs; what only a running one knows is told as its last word.

Exit codes: 0 answered, whatever the answer; 1 a fault; 2 bad input, or no such machine; 3 refused.`,
		Example:           "  kubectl refit why worker-7\n  kubectl refit why worker-7 -o yaml",
		Args:              exactlyOne,
		ValidArgsFunction: c.completesOne(verbs.Machine),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneOf("output", output, "", "yaml", "json"); err != nil {
				return err
			}
			return c.why(cmd.Context(), args, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json, instead of text")
	return cmd
}

func (c *command) why(ctx context.Context, names []string, output string) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	nodes, err := c.nodes()
	if err != nil {
		return err
	}
	n, err := verbs.ReadAll(ctx, cl, nodes, c.namespace())
	if err != nil {
		return explained(err)
	}
	targets, err := n.Select(names, machinesOnly)
	if err != nil {
		return err
	}
	e := n.Why(targets[0].GetName())
	return c.printAs(output, "explanation", e, func() error { return verbs.PrintExplanation(c.out, e, time.Now()) })
}
