package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/cli/verbs"
	"github.com/refit-dev/refit/pkg/usage"
)

// changer is what the verbs share that change objects: how they write, ask and print.
type changer struct {
	*command
	dryRun string
	yes    bool
	print  *genericclioptions.PrintFlags
}

func newChanger(c *command, cmd *cobra.Command, asks bool) *changer {
	o := &changer{command: c, dryRun: "none", print: genericclioptions.NewPrintFlags("").WithTypeSetter(kinds)}
	cmd.Flags().StringVar(&o.dryRun, "dry-run", "none", "none, client (show what would be written) or server (have the API server judge it, and write nothing)")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
	if asks {
		cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask")
	}
	o.print.AddFlags(cmd)
	return o
}

// begin checks the flags, and reads the namespace.
func (o *changer) begin(ctx context.Context) (client.Client, *verbs.Namespace, error) {
	if err := usage.OneOf("dry-run", o.dryRun, "none", "client", "server"); err != nil {
		return nil, nil, err
	}
	if _, err := o.print.ToPrinter(); err != nil {
		return nil, nil, usage.Errorf("--output: %w", err)
	}
	return o.readNamespace(ctx)
}

func (c *command) readNamespace(ctx context.Context) (client.Client, *verbs.Namespace, error) {
	cl, err := c.client()
	if err != nil {
		return nil, nil, err
	}
	n, err := verbs.Read(ctx, cl, c.namespace())
	return cl, n, explained(err)
}

// explained words what a cluster without Refit answers.
func explained(err error) error {
	if meta.IsNoMatchError(err) {
		return refused{"Refit is not installed in this cluster: run kubectl refit install first"}
	}
	var no verbs.Refused
	if errors.As(err, &no) {
		return refused{no.Message}
	}
	return err
}

// carryOut writes the changes one after another and prints each as kubectl would.
func (o *changer) carryOut(ctx context.Context, cl client.Client, changes []verbs.Change) error {
	for _, c := range changes {
		if err := o.write(ctx, cl, &c); err != nil {
			return fmt.Errorf("%s %s: %w", kindName(c.Target()), c.Target().GetName(), err)
		}
		if err := o.show(c); err != nil {
			return err
		}
	}
	return nil
}

func (o *changer) write(ctx context.Context, cl client.Client, c *verbs.Change) error {
	if c.Nothing() || o.dryRun == "client" {
		return nil
	}
	var create []client.CreateOption
	var patch []client.PatchOption
	if o.dryRun == "server" {
		create, patch = append(create, client.DryRunAll), append(patch, client.DryRunAll)
	}
	if c.Before == nil {
		return cl.Create(ctx, c.After, append(create, client.FieldOwner(install.FieldManager))...) //nolint:wrapcheck // the caller says of which object
	}
	patch = append(patch, client.FieldOwner(install.FieldManager))
	if !c.Exact {
		return cl.Patch(ctx, c.After, client.MergeFrom(c.Before), patch...) //nolint:wrapcheck // the caller says of which object
	}
	return exactly(ctx, cl, c, patch)
}

// exactly writes a change that is only right for the spec that was read. A new status
// meanwhile, as in a rollout, is no reason to give up.
func exactly(ctx context.Context, cl client.Client, c *verbs.Change, opts []client.PatchOption) error {
	want := c.After
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { //nolint:wrapcheck // the caller says of which object
		after, _ := want.DeepCopyObject().(client.Object)
		err := cl.Patch(ctx, after, client.MergeFromWithOptions(c.Before, client.MergeFromWithOptimisticLock{}), opts...)
		if !apierrors.IsConflict(err) {
			c.After = after
			return err //nolint:wrapcheck // the caller says of which object
		}
		now, _ := reflect.New(reflect.TypeOf(c.Before).Elem()).Interface().(client.Object)
		if err := cl.Get(ctx, client.ObjectKeyFromObject(c.Before), now); err != nil {
			return fmt.Errorf("reading it again: %w", err)
		}
		if c.Redo != nil && now.GetUID() == c.Before.GetUID() {
			c.Before = now
			redone, failed := c.Redo(now)
			if failed != nil {
				return explained(failed)
			}
			want = redone
			return err //nolint:wrapcheck // the caller says of which object
		}
		if now.GetGeneration() != c.Before.GetGeneration() || now.GetUID() != c.Before.GetUID() {
			return refused{"its spec has changed meanwhile: look at it, and run the command again"}
		}
		c.Before.SetResourceVersion(now.GetResourceVersion())
		want.SetResourceVersion(now.GetResourceVersion())
		return err //nolint:wrapcheck // the caller says of which object
	})
}

func (o *changer) show(c verbs.Change) error {
	for _, note := range c.Notes {
		fmt.Fprintln(o.err, note)
	}
	flags := *o.print
	names := *o.print.NamePrintFlags
	flags.NamePrintFlags = &names
	template := "%s"
	switch {
	case c.Nothing():
	case o.dryRun == "client":
		template = "%s (dry run)"
	case o.dryRun == "server":
		template = "%s (server dry run)"
	}
	names.Operation = c.Done
	if err := flags.Complete(template); err != nil {
		return fmt.Errorf("setting up the output: %w", err)
	}
	printer, err := flags.ToPrinter()
	if err != nil {
		return usage.Errorf("--output: %w", err)
	}
	if err := printer.PrintObj(c.Target(), o.out); err != nil {
		return fmt.Errorf("printing %s: %w", c.Target().GetName(), err)
	}
	return nil
}

// confirm asks a person about what cannot be taken back. Without one to ask nothing is done.
func (o *changer) confirm(question string) error {
	if o.yes || o.dryRun != "none" {
		return nil
	}
	if file, ok := o.in.(*os.File); o.in == nil || ok && !term.IsTerminal(file) {
		return usage.Errorf("the standard input is no terminal, so nobody can be asked: give --yes")
	}
	if !saysYes(o.in, o.err, question) {
		return refused{"not confirmed: nothing was changed"}
	}
	return nil
}

func saysYes(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, question+" [y/N]: ")
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no yes
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

func kindName(o client.Object) string {
	return reflect.TypeOf(o).Elem().Name()
}
