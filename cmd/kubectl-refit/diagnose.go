package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/refit-dev/refit/cli/diagnose"
	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
	"github.com/refit-dev/refit/pkg/version"
)

type diagnoseOptions struct {
	*command
	file     string
	logBytes int64
}

func newDiagnose(c *command) *cobra.Command {
	o := &diagnoseOptions{command: c}
	cmd := &cobra.Command{
		Use:   "diagnose [MACHINE]...",
		Short: "Pack what a bug report needs into one archive, without secrets",
		Long: `Reads what Refit keeps in the cluster, the Nodes of the machines, events and the end of the
coordinator's logs, and packs them into one archive, whose path is printed. Secrets and ConfigMaps
are not read; keys, tokens, passwords and credentials of URIs are taken out of the rest. What
could not be read is listed in the archive's summary.yaml, with the reason. Nothing is changed.

Exit codes: 0 packed, also where something could not be read, which is a warning; 1 a fault, or
nothing could be read; 2 bad input.`,
		Example:           "  kubectl refit diagnose\n  kubectl refit diagnose worker-7 --file /tmp/worker-7.tar.gz",
		ValidArgsFunction: c.completes(verbs.Machine),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&o.file, "file", "", "Where to write it, - for the standard output (refit-diagnose-TIME.tar.gz in this folder unless given)")
	cmd.Flags().Int64Var(&o.logBytes, "log-bytes", 1<<20, "How much of each container's log is read at most, from its end")
	return cmd
}

func (o *diagnoseOptions) run(ctx context.Context, machines []string) error {
	if o.logBytes < 1 {
		return usage.Errorf("--log-bytes is 1 or more")
	}
	cl, err := o.client()
	if err != nil {
		return err
	}
	kube, err := o.kube()
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	a := diagnose.New(diagnose.Summary{Refit: version.Version, Time: now, Namespace: o.namespace(), Machines: machines})
	a.Collect(ctx, diagnose.Source{Client: cl, Kube: kube, LogBytes: o.logBytes})
	if a.Empty() {
		return fmt.Errorf("nothing could be read, and so there is no archive: %s", a.Summary.NotRead[0].Reason)
	}
	folder := "refit-diagnose-" + now.Format("20060102T150405Z")
	if o.file == "" {
		o.file = folder + ".tar.gz"
	}
	if err := o.write(a, folder); err != nil {
		return err
	}
	for _, m := range a.Summary.NotRead {
		fmt.Fprintf(o.err, "Warning: %s could not be read: %s\n", m.What, m.Reason)
	}
	return nil
}

// write makes a file of its own: what was there before is never overwritten.
func (o *diagnoseOptions) write(a *diagnose.Archive, folder string) error {
	if o.file == "-" {
		return a.Write(o.out, folder)
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usage.Errorf("--file %s is there already", o.file)
	}
	if err != nil {
		return fmt.Errorf("creating the archive: %w", err)
	}
	if err := errors.Join(a.Write(io.Writer(f), folder), f.Close()); err != nil {
		return errors.Join(err, os.Remove(o.file))
	}
	fmt.Fprintln(o.out, o.file)
	return nil
}
