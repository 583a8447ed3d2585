package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/agent/apply"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/usage"
)

// operationList is what operations prints with -o json and -o yaml.
type operationList struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"` // OperationList
	Items      []apply.Outcome `json:"items"`
}

func operationsCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "operations",
		Short: "Say how the operations of this host went, by its own record",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := usage.OneOf("output", output, "table", "yaml", "json"); err != nil {
				return err
			}
			host, err := newHost(cmd)
			if err != nil {
				return err
			}
			record, err := host.Operations()
			if err != nil {
				return err
			}
			records, unread := record.Operations()
			list := operationsOf(records, func(id string) bool { return host.WorksOn(cmd.Context(), id) })
			if output != "table" {
				return errors.Join(encode(cmd.OutOrStdout(), output, list), unread)
			}
			return errors.Join(printOperations(cmd.OutOrStdout(), list), unread)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, yaml or json")
	return cmd
}

// operationsOf asks of each open operation whether somebody works on it.
func operationsOf(records []journal.Record, worksOn func(id string) bool) operationList {
	list := operationList{APIVersion: v1alpha1.GroupVersion.String(), Kind: "OperationList", Items: []apply.Outcome{}}
	for _, r := range records {
		outcome := apply.OutcomeOf(r)
		if !r.Finished() && worksOn(r.Operation.ID) {
			outcome.State = apply.Processing
		}
		list.Items = append(list.Items, outcome)
	}
	return list
}

func printOperations(out io.Writer, list operationList) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "OPERATION\tTYPE\tSTATE\tSTEPS\tSTARTED\tELAPSED\tDESCRIPTION")
	for _, o := range list.Items {
		op, elapsed, started := o.Operation, "", ""
		if op.StartTime != nil {
			started = op.StartTime.UTC().Format(time.RFC3339)
			if o.EndTime != nil {
				elapsed = o.EndTime.Truncate(time.Second).Sub(op.StartTime.Time).String()
			}
		}
		text := op.Description
		if op.Reason != "" {
			text = op.Reason + ": " + text
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\n", op.ID, op.Type, o.State, op.StepsDone, op.StepsTotal, started, elapsed, redact.URIs(strings.Join(strings.Fields(text), " ")))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
