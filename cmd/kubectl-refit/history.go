package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

type historyOptions struct {
	*command
	revision int64
	output   string
}

func newHistory(c *command) *cobra.Command {
	o := &historyOptions{command: c}
	cmd := &cobra.Command{
		Use:   "history POOL | machine/NAME",
		Short: "Show the revisions of a pool, or what was done on a machine",
		Long: `Of a pool: each template that it has had, with its change cause (annotation
kubernetes.io/change-cause); the current one has a star, and --revision shows one in full.
Of a machine: its last five operations, how they went, and how long each phase took.

Exit codes: 0 shown; 1 a fault; 2 bad input, or no such name or revision; 3 refused.`,
		Example:           "  kubectl refit history workers\n  kubectl refit history workers --revision 3\n  kubectl refit history machine/worker-7 -o yaml",
		Args:              exactlyOne,
		ValidArgsFunction: c.completesOne(verbs.Pool, verbs.Machine),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "Show this revision of a pool in full")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "yaml or json, instead of the table")
	return cmd
}

func (o *historyOptions) run(ctx context.Context, names []string) error {
	if err := usage.OneOf("output", o.output, "", "yaml", "json"); err != nil {
		return err
	}
	cl, n, err := o.readNamespace(ctx)
	if err != nil {
		return err
	}
	targets, err := n.Select(names, poolsFirst, verbs.Machine)
	if err != nil {
		return err
	}
	if m, ok := targets[0].(*v1alpha1.Machine); ok {
		if o.revision != 0 {
			return usage.Errorf("--revision is for pools: machine %s has operations", m.Name)
		}
		return o.operations(m)
	}
	return o.revisions(ctx, cl, targets[0])
}

func (o *historyOptions) operations(m *v1alpha1.Machine) error {
	if len(m.Status.History) == 0 && o.output == "" {
		fmt.Fprintf(o.err, "Nothing has been done on machine %s yet.\n", m.Name)
		return nil
	}
	return o.printAs(o.output, "history", append([]v1alpha1.HistoryEntry{}, m.Status.History...), func() error { return verbs.PrintOperations(o.out, m.Status.History, time.Now()) })
}

func (o *historyOptions) revisions(ctx context.Context, cl client.Client, target client.Object) error {
	d, err := as[*v1alpha1.MachineDeployment](target)
	if err != nil {
		return err
	}
	all, err := verbs.History(ctx, cl, d)
	if err != nil {
		return err
	}
	if o.revision != 0 {
		one, err := verbs.FindRevision(d.Name, all, o.revision)
		if err != nil {
			return err
		}
		format := o.output
		if format == "" {
			format = "yaml"
		}
		return o.printAs(format, "revision", one, nil)
	}
	if len(all) == 0 && o.output == "" {
		fmt.Fprintf(o.err, "Pool %s has no revision yet: its coordinator makes them.\n", d.Name)
		return nil
	}
	return o.printAs(o.output, "history", all, func() error { return verbs.PrintRevisions(o.out, all, time.Now()) })
}
