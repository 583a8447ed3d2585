package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

func newUndo(c *command) *cobra.Command {
	number := int64(0)
	cmd := &cobra.Command{
		Use:   "undo POOL",
		Short: "Bring a pool back to what it was asked for before",
		Long: `Restores the template of an earlier revision, the one before the current one unless
--to-revision names another (kubectl refit history POOL lists them). Shows what changes,
and asks. The machines go back as they went forward: one after another, under the gates.

A control plane and etcd never go back: where they would, nothing is changed. A machine that
has not run that very set of versions under Refit before refuses by itself, and is named.

Exit codes: 0 rolled back, or there already; 1 a fault; 2 bad input, or no such pool or
revision; 3 refused, or not confirmed.`,
		Example:           "  kubectl refit undo workers\n  kubectl refit undo workers --to-revision 3 --yes\n  kubectl refit undo workers --dry-run=server",
		Args:              exactlyOne,
		ValidArgsFunction: c.completesOne(verbs.Pool),
	}
	o := newChanger(c, cmd, true)
	cmd.Flags().Int64Var(&number, "to-revision", 0, "The revision to go back to; 0 is the one before the current one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if number < 0 {
			return usage.Errorf("--to-revision %d is no number of a revision", number)
		}
		return o.undo(cmd.Context(), args, number)
	}
	return cmd
}

func (o *changer) undo(ctx context.Context, names []string, number int64) error {
	cl, n, err := o.begin(ctx)
	if err != nil {
		return err
	}
	d, err := poolOf(n, names)
	if err != nil {
		return err
	}
	nodes, err := o.nodes()
	if err != nil {
		return err
	}
	u, err := n.Undo(ctx, cl, nodes, d, number)
	if err != nil {
		return explained(err)
	}
	if !u.Change.Nothing() {
		fmt.Fprint(o.err, u.Diff)
		for _, note := range u.Change.Notes {
			fmt.Fprintln(o.err, note)
		}
		u.Change.Notes = nil
		if err := o.confirm(fmt.Sprintf("Bring pool %s back to revision %d?", d.Name, u.Revision)); err != nil {
			return err
		}
	}
	return o.carryOut(ctx, cl, []verbs.Change{u.Change})
}

func poolOf(n *verbs.Namespace, names []string) (*v1alpha1.MachineDeployment, error) {
	targets, err := n.Select(names, poolsFirst)
	if err != nil {
		return nil, err
	}
	return as[*v1alpha1.MachineDeployment](targets[0])
}

func as[T client.Object](o client.Object) (T, error) {
	t, ok := o.(T)
	if !ok {
		return t, fmt.Errorf("%s is a %T", o.GetName(), o)
	}
	return t, nil
}
