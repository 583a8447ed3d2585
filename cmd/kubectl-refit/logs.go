package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/logs"
	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

// elsewhereError is an answer that is not to be had from here.
type elsewhereError struct{ message string }

func (e elsewhereError) Error() string { return e.message }

func newLogs(c *command) *cobra.Command {
	id, tail := "", 0
	cmd := &cobra.Command{
		Use:   "logs MACHINE",
		Short: "Print what the executor printed on a host",
		Long: `What an executor prints is in the journal of its host, and not in the cluster. Where the
kubelet of the host answers log queries (enableSystemLogQuery in its configuration) and you
may get nodes/proxy, the journal of the operation is printed. Else what the Machine says of
the operation is printed, with the command that shows the rest on the host.

Exit codes: 0 printed; 1 a fault; 2 bad input, or no such machine or operation; 3 nothing was
ever done on the machine; 7 the journal is to be had only on the host.`,
		Example:           "  kubectl refit logs worker-7\n  kubectl refit logs worker-7 --operation 6f1c2b --tail 100",
		Args:              exactlyOne,
		ValidArgsFunction: c.completesOne(verbs.Machine),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.logs(cmd.Context(), args, id, tail) },
	}
	cmd.Flags().StringVar(&id, "operation", "", "Id of the operation (see kubectl refit history machine/NAME); the last one unless given")
	cmd.Flags().IntVar(&tail, "tail", 0, "Only so many lines from the end; 0 for all")
	return cmd
}

func (c *command) logs(ctx context.Context, names []string, id string, tail int) error {
	if tail < 0 || tail > 100000 {
		return usage.Errorf("--tail is between 0 and 100000")
	}
	_, n, err := c.readNamespace(ctx)
	if err != nil {
		return err
	}
	targets, err := n.Select(names, machinesOnly)
	if err != nil {
		return err
	}
	m, _ := targets[0].(*v1alpha1.Machine)
	op, err := logs.Find(m, id)
	switch {
	case err != nil:
		return err
	case op.ID == "":
		return refused{fmt.Sprintf("nothing was ever done on machine %s: there is no operation, and no log", m.Name)}
	}
	text, err := c.journal(ctx, m, op, tail)
	var elsewhere logs.Elsewhere
	if errors.As(err, &elsewhere) {
		fmt.Fprintln(c.out, strings.Join(op.Lines, "\n"))
		return elsewhereError{fmt.Sprintf("the journal of %s is to be had only on the host: %s. There run: journalctl -u %s -u refit-resume", m.Name, elsewhere.Reason, logs.Unit(op.ID))}
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(c.err, strings.Join(op.Lines, "\n"))
	_, err = fmt.Fprint(c.out, text)
	return err
}

func (c *command) journal(ctx context.Context, m *v1alpha1.Machine, op logs.Operation, tail int) (string, error) {
	if m.Status.NodeRef == nil {
		return "", logs.Elsewhere{Reason: "the machine has no Node in this cluster"}
	}
	kube, err := c.kube()
	if err != nil {
		return "", err
	}
	return logs.Read(ctx, kube.CoreV1().RESTClient(), m.Status.NodeRef.Name, op, tail)
}
