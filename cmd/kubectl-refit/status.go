package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
	"github.com/refit-dev/refit/pkg/usage"
)

func newStatus(c *command) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show pools and machines: what runs, and what each waits for",
		Args:  usage.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), c, output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json: the objects instead of the tables")
	return cmd
}

func runStatus(ctx context.Context, c *command, output string) error {
	if err := usage.OneOf("output", output, "", "yaml", "json"); err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	var pools v1alpha1.MachineDeploymentList
	var machines v1alpha1.MachineList
	for _, list := range []client.ObjectList{&pools, &machines} {
		err := cl.List(ctx, list, client.InNamespace(c.namespace()))
		if meta.IsNoMatchError(err) {
			return refused{"Refit is not installed in this cluster: run kubectl refit install first"}
		}
		if err != nil {
			return fmt.Errorf("listing pools and machines: %w", err)
		}
	}
	if output != "" {
		var objects []any
		for i := range pools.Items {
			objects = append(objects, &pools.Items[i])
		}
		for i := range machines.Items {
			objects = append(objects, &machines.Items[i])
		}
		return printDocuments(c.out, output, objects)
	}
	if len(machines.Items) == 0 {
		fmt.Fprintf(c.err, "There are no machines in namespace %s: kubectl refit adopt --apply makes them from the cluster's nodes.\n", c.namespace())
		return nil
	}
	coordinator, err := readCoordinator(ctx, cl)
	if err != nil {
		return err
	}
	return status.Print(c.out, pools.Items, machines.Items, coordinator)
}

// readCoordinator reads the coordinator's Lease, where that is allowed.
func readCoordinator(ctx context.Context, cl client.Client) (status.Coordinator, error) {
	lease := &coordinationv1.Lease{}
	err := cl.Get(ctx, client.ObjectKey{Namespace: status.LeaseNamespace, Name: status.LeaseName}, lease)
	switch {
	case apierrors.IsForbidden(err):
		return status.Coordinator{}, nil
	case apierrors.IsNotFound(err):
		return status.Coordinator{Known: true}, nil
	case err != nil:
		return status.Coordinator{}, fmt.Errorf("reading Lease %s/%s: %w", status.LeaseNamespace, status.LeaseName, err)
	}
	return status.Coordinator{Known: true, Lease: lease, Now: time.Now()}, nil
}
