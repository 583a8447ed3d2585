package main

import (
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/verbs"
)

func newRetry(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry MACHINE... | POOL...",
		Short: "Try machines again that have failed; of a pool, all of them",
		Long: `Clears what failed on machines and has them planned afresh: once the cause is gone, this is
what lets a rollout go on that has paused itself. A drain that is tried again later is tried
at once. Machines that have not failed are left as they are.

Exit codes: 0 asked for, or nothing had failed; 1 a fault; 2 bad input, or no such name; 3 refused.`,
		Example:           "  kubectl refit retry worker-7\n  kubectl refit retry machinedeployment/workers",
		Args:              atLeastOne,
		ValidArgsFunction: c.completes(verbs.Machine, verbs.Pool),
	}
	o := newChanger(c, cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.run(cmd.Context(), args, func(n *verbs.Namespace, targets []client.Object) ([]verbs.Change, error) {
			return n.Retry(targets, time.Now()), nil
		}, []verbs.Kind{verbs.Machine, verbs.Pool})
	}
	return cmd
}
