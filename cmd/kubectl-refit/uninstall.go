package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/deploy"
	"github.com/refit-dev/refit/pkg/usage"
)

type uninstallOptions struct {
	*command
	data    bool
	timeout time.Duration
}

func newUninstall(c *command) *cobra.Command {
	o := &uninstallOptions{command: c}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take Refit out of the cluster; what runs on the hosts stays as it is",
		Long: `Deletes the coordinator and the admission policies, and takes Refit's marks off the Nodes. Machines, pools, their CRDs and
the namespaces stay unless --delete-data is given, now or later. Refused while a machine is in flight:
its node may be cordoned, and only the coordinator gives it back.

Where the agents are a DaemonSet, each host also gives up the executor and refit-resume.service that
its pod had installed, and with --delete-data the record of its operations: what is left there are the
empty directories /var/lib/refit and /etc/refit. A host that cannot run a pod now is named.`,
		Args: usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.data, "delete-data", false, "Also delete every Machine, MachineDeployment, MachineDisruptionBudget and Ledger, the CRDs and the namespaces")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait in all")
	return cmd
}

func (o *uninstallOptions) run(ctx context.Context) error {
	objects, err := install.Load(deploy.Manifests)
	if err != nil {
		return err
	}
	pods, err := install.Load(deploy.DaemonSet)
	if err != nil {
		return err
	}
	cl, err := o.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	i := &install.Installer{Client: cl, Out: o.out}
	busy, err := i.InFlight(ctx)
	if err != nil {
		return err
	}
	if len(busy) > 0 {
		return refused{fmt.Sprintf("machines in flight: %s: pause their pools and wait until none is in flight", strings.Join(busy, ", "))}
	}
	kube, err := o.kube()
	if err != nil {
		return err
	}
	if err := i.LeaveHosts(ctx, pods, o.data); err != nil {
		return err
	}
	there, err := i.Remaining(ctx, pods)
	if err != nil {
		return err
	}
	if err := i.Delete(ctx, there); err != nil {
		return err
	}
	if err := o.delete(ctx, i, objects); err != nil {
		return err
	}
	return install.ClearNodes(ctx, kube, func(format string, args ...any) { fmt.Fprintf(o.out, format+"\n", args...) })
}

func (o *uninstallOptions) delete(ctx context.Context, i *install.Installer, objects []*unstructured.Unstructured) error {
	if !o.data {
		return o.keepData(ctx, i, objects)
	}
	if err := i.DeleteData(ctx, objects); err != nil {
		return err
	}
	return i.Delete(ctx, objects)
}

// keepData deletes all but what holds data, and says what that is.
func (o *uninstallOptions) keepData(ctx context.Context, i *install.Installer, objects []*unstructured.Unstructured) error {
	there, err := i.Remaining(ctx, objects)
	if err != nil {
		return err
	}
	doomed := slices.DeleteFunc(slices.Clone(there), holdsData)
	if len(doomed) == 0 {
		fmt.Fprintln(o.out, "nothing to do: the coordinator and its policies are not in this cluster")
	}
	if err := i.Delete(ctx, doomed); err != nil {
		return err
	}
	if len(there) > len(doomed) {
		fmt.Fprintln(o.out, "Machines and pools, their CRDs and the namespaces stay: kubectl refit uninstall --delete-data takes them away")
	}
	return nil
}

func holdsData(o *unstructured.Unstructured) bool {
	return o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace"
}
