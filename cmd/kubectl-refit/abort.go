package main

import (
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

func newAbort(c *command) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "abort POOL...",
		Short: "End the rollout of pools, and say why",
		Long: `Pauses pools and records why, so that whoever looks at them knows that this rollout is not
to go on: condition Progressing has reason Aborted. Places that hosts have not accepted are
taken back and their nodes given back; what a host has accepted finishes or rolls back.
kubectl refit undo brings back what the pool ran before, and resume goes on after all.

Exit codes: 0 aborted, now or before; 1 a fault; 2 bad input, or no such pool; 3 refused.`,
		Example:           "  kubectl refit abort workers --reason 'the new kernel loses its disks'",
		Args:              atLeastOne,
		ValidArgsFunction: c.completes(verbs.Pool),
	}
	o := newChanger(c, cmd, false)
	cmd.Flags().StringVar(&reason, "reason", verbs.DefaultAbortReason, "Why, for those who see it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if reason = strings.TrimSpace(reason); reason == "" || len(reason) > maxReason {
			return usage.Errorf("--reason is a text of 1 to %d characters", maxReason)
		}
		return o.run(cmd.Context(), args, func(n *verbs.Namespace, targets []client.Object) ([]verbs.Change, error) {
			return n.Abort(targets, reason), nil
		}, poolsFirst)
	}
	return cmd
}

// maxReason keeps the conditions small that repeat it.
const maxReason = 256
