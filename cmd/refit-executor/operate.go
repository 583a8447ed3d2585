package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/agent/executor"
	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/redact"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

func runCommand(o *options) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "run --operation ID",
		Short: "Carry an accepted operation out, go on with it, or give its recorded outcome",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			op, err := o.operation(id)
			if err != nil {
				return err
			}
			rec, err := o.executor(cmd.Context(), id).Run(cmd.Context(), op)
			if err != nil {
				return err
			}
			return failedOr(rec)
		},
	}
	cmd.Flags().StringVar(&id, "operation", "", "id of the operation")
	mandatory(cmd, "operation")
	return cmd
}

// operation is what the journal holds, else what the agent has left. A journal that
// cannot be trusted stops everything: its operation may be half done.
func (o *options) operation(id string) (upgrade.Operation, error) {
	rec, err := journal.Read(o.stateDir(), id)
	if errors.Is(err, fs.ErrNotExist) {
		return executor.LoadOperation(o.stateDir(), id)
	}
	return rec.Operation, err
}

func resumeCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Go on with every operation that has no outcome yet",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ended, err := o.executor(cmd.Context(), "resume").Resume(cmd.Context())
			errs := []error{err}
			for _, rec := range ended {
				if rec.Finished() {
					errs = append(errs, failedOr(rec))
				}
			}
			return errors.Join(errs...)
		},
	}
}

func failedOr(rec journal.Record) error {
	if rec.State != journal.Failed {
		return nil
	}
	return fmt.Errorf("operation %s: %w: %s: %s", rec.Operation.ID, errRefused, rec.Reason, rec.Message)
}

func statusCommand(o *options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status [ID]",
		Short: "Say how operations of this host went or go",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := usage.OneOf("format", format, "", "json", "yaml"); err != nil {
				return err
			}
			records, err := o.records(args)
			if format != "" {
				return errors.Join(write(cmd, "", format, records), err)
			}
			return errors.Join(printStatus(cmd, records), err)
		},
	}
	cmd.Flags().StringVarP(&format, "format", "o", "", "json or yaml; for people unless set")
	return cmd
}

func (o *options) records(args []string) ([]journal.Record, error) {
	if len(args) == 0 {
		return journal.NewStore(o.stateDir()).List()
	}
	rec, err := journal.Read(o.stateDir(), args[0])
	if err != nil {
		return nil, err
	}
	return []journal.Record{rec}, nil
}

func printStatus(cmd *cobra.Command, records []journal.Record) error {
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "OPERATION\tSTATE\tSTEPS\tSTARTED\tSTEP\tMESSAGE")
	for _, r := range records {
		state := string(r.State)
		switch {
		case r.RolledBack:
			state += ", rolled back"
		case r.RollingBack && !r.Finished():
			state += ", rolling back"
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%d/%d\t%s\t%s\t%s\n", r.Operation.ID, state, r.Done(), len(r.Steps),
			r.StartTime.UTC().Format("2006-01-02 15:04:05Z"), r.Telling(), oneLine(r.Message))
	}
	return out.Flush()
}

// oneLine keeps a table a table; the whole text is in -o yaml.
func oneLine(text string) string {
	const limit = 160
	text = redact.URIs(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
