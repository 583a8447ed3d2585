package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
)

func newRelease(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release MACHINE [FIELD...]",
		Short: "Give fields that somebody else has set on a machine back to its pool",
		Long: `A field of a Machine that somebody else has set (kubectl, a GitOps tool) is not written by
the template of its pool: condition Overridden names it and who owns it. This takes the
ownership of those fields away from the others, of all or of those that are named, and of
nothing else; the coordinator then writes what the template has.

Exit codes: 0 released, or nothing is overridden; 1 a fault; 2 bad input, no such machine, or a
field that is not overridden; 3 refused: the machine has no pool.`,
		Example:           "  kubectl refit release worker-7\n  kubectl refit release worker-7 spec.versions.kubelet",
		Args:              atLeastOne,
		ValidArgsFunction: c.completesOne(verbs.Machine),
	}
	o := newChanger(c, cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.release(cmd.Context(), args[0], args[1:]) }
	return cmd
}

func (o *changer) release(ctx context.Context, name string, fields []string) error {
	cl, n, err := o.begin(ctx)
	if err != nil {
		return err
	}
	targets, err := n.Select([]string{name}, machinesOnly)
	if err != nil {
		return err
	}
	m, err := as[*v1alpha1.Machine](targets[0])
	if err != nil {
		return err
	}
	change, err := n.Release(ctx, cl, m, fields)
	if err != nil {
		return explained(err)
	}
	return o.carryOut(ctx, cl, []verbs.Change{change})
}
