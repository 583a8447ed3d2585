package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/verbs"
)

func newForget(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget MACHINE...",
		Short: "End the operation of a host that is lost, without waiting for it",
		Long: `An operation that a host has accepted is waited for, however long it takes, and holds its
place and its Machine meanwhile. Where the host does not come back this ends it, as a failure
with reason Forgotten: the place goes to another machine, and a Machine that is being deleted
goes. It says what is lost and asks first. The word is good for that operation only.

Exit codes: 0 forgotten, or there was nothing to forget; 1 a fault; 2 bad input, or no such
machine; 3 refused, or not confirmed.`,
		Example:           "  kubectl refit forget worker-7\n  kubectl refit forget worker-7 --yes",
		Args:              atLeastOne,
		ValidArgsFunction: c.completes(verbs.Machine),
	}
	o := newChanger(c, cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.run(cmd.Context(), args, func(n *verbs.Namespace, targets []client.Object) ([]verbs.Change, error) {
			changes := n.Forget(targets)
			return changes, o.confirmForget(changes)
		}, machinesOnly)
	}
	return cmd
}

// confirmForget shows what is lost before it asks, and not again afterwards.
func (o *changer) confirmForget(changes []verbs.Change) error {
	var names []string
	for i := range changes {
		if changes[i].Nothing() {
			continue
		}
		names = append(names, changes[i].Target().GetName())
		for _, note := range changes[i].Notes {
			fmt.Fprintln(o.err, note)
		}
		changes[i].Notes = nil
	}
	if len(names) == 0 {
		return nil
	}
	return o.confirm("Forget what runs on " + strings.Join(names, ", ") + "?")
}
