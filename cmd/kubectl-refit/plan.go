package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/plan"
	"github.com/refit-dev/refit/pkg/manifest"
	"github.com/refit-dev/refit/pkg/manifest/crd"
	"github.com/refit-dev/refit/pkg/preview"
	"github.com/refit-dev/refit/pkg/usage"
)

type planOptions struct {
	*command
	files, facts  []string
	live          bool
	allNamespaces bool
	output        string
}

func newPlan(c *command) *cobra.Command {
	o := &planOptions{command: c}
	cmd := &cobra.Command{
		Use:   "plan [MACHINE | machinedeployment/NAME]... [-f OBJECTS.yaml]... [--facts FACTS.yaml]...",
		Short: "Show what Refit would do to each machine, and change nothing",
		Long: `Without -f, plans for the cluster's Machines as their specs are now. With -f, plans for
the objects in the files and asks no cluster; --live lays them over what the cluster
has, to see what an edit would do before it is applied. Facts are what refit-agent facts
prints on a host; without them, what a Machine reports in its status is planned with.

The whole fleet counts for the order and for version skew, also where only some machines
are named. Exit codes: 0 planned, or nothing to do; 2 bad input; 3 a machine is refused.`,
		Example: "  kubectl refit plan\n  kubectl refit plan -f pool.yaml --live\n  kubectl refit plan -f objects.yaml --facts worker-1.yaml -o json",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "File with Machines and MachineDeployments, and facts too; - is the standard input (may be repeated)")
	cmd.Flags().StringArrayVar(&o.facts, "facts", nil, "File with what refit-agent facts prints, or with Machines that have a status (may be repeated)")
	cmd.Flags().BoolVar(&o.live, "live", false, "Lay the files over what the cluster has now")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Plan for the Machines of all namespaces")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "Format to print in: table, wide, yaml or json")
	return cmd
}

func (o *planOptions) run(ctx context.Context, names []string) error {
	if err := usage.OneOf("output", o.output, "table", "wide", "yaml", "json"); err != nil {
		return err
	}
	if all := slices.Concat(o.files, o.facts); slices.Contains(all, "-") && slices.Contains(all[slices.Index(all, "-")+1:], "-") {
		return usage.Errorf("the standard input can be read once: give - to one of -f and --facts, objects and facts may both be in it with -f")
	}
	fleet, err := o.gather(ctx)
	if err != nil {
		return badInput(err)
	}
	if fleet.Empty() && len(o.files) > 0 {
		return usage.Errorf("there is no Machine in %s: add the pool's Machines, or lay the files over the cluster's with --live", strings.Join(o.files, ", "))
	}
	if fleet.Empty() && o.output != "json" && o.output != "yaml" {
		fmt.Fprintln(o.err, "There are no machines: kubectl refit adopt --apply makes them from the cluster's nodes.")
		return nil
	}
	list, err := fleet.Plan(names, time.Now())
	if err != nil {
		return badInput(err)
	}
	if err := o.print(list); err != nil {
		return err
	}
	if names := list.Refused(); len(names) > 0 {
		return refused{fmt.Sprintf("refused for %d of %d machines: %s", len(names), len(list.Items), strings.Join(names, ", "))}
	}
	return nil
}

func badInput(err error) error {
	var missing plan.NotFound
	if manifest.Invalid(err) || errors.As(err, &missing) {
		return usage.Errorf("%w", err)
	}
	return err
}

// gather reads cluster and files. Without files there must be a cluster.
func (o *planOptions) gather(ctx context.Context) (*plan.Fleet, error) {
	fleet := &plan.Fleet{}
	old := map[string]map[string]any{}
	if len(o.files) == 0 || o.live {
		if err := o.addLive(ctx, fleet, old); err != nil {
			return nil, err
		}
	}
	options := manifest.Options{Namespace: o.namespace(), Kinds: plan.Kinds, Stdin: o.in, Check: crd.Check,
		Old: func(kind, namespace, name string) map[string]any { return old[kind+"/"+namespace+"/"+name] }}
	if len(o.files) > 0 {
		objects, err := manifest.Read(o.files, options)
		if err != nil {
			return nil, err
		}
		if err := fleet.AddObjects(objects); err != nil {
			return nil, err
		}
	}
	if len(o.facts) == 0 {
		return fleet, nil
	}
	options.Kinds, options.Old = plan.FactsKinds, nil
	facts, err := manifest.Read(o.facts, options)
	if err != nil {
		return nil, err
	}
	return fleet, fleet.AddFacts(facts)
}

// addLive reads the cluster, and keeps its objects for rules about what may change.
func (o *planOptions) addLive(ctx context.Context, fleet *plan.Fleet, old map[string]map[string]any) error {
	cl, err := o.client()
	if err != nil {
		return err
	}
	var in []client.ListOption
	if !o.allNamespaces {
		in = append(in, client.InNamespace(o.namespace()))
	}
	var machines v1alpha1.MachineList
	var pools v1alpha1.MachineDeploymentList
	for _, list := range []client.ObjectList{&machines, &pools} {
		err := cl.List(ctx, list, in...)
		if meta.IsNoMatchError(err) {
			return refused{"Refit is not installed in this cluster: run kubectl refit install first"}
		}
		if err != nil {
			return fmt.Errorf("listing pools and machines: %w", err)
		}
	}
	workload, err := o.nodes()
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	switch err := workload.List(ctx, &nodes); {
	case apierrors.IsForbidden(err):
		fleet.Find("NodesUnknown", "the Nodes of the cluster may not be listed, so those without a Machine do not count for skew: have list on nodes granted")
	case err != nil:
		return fmt.Errorf("listing the nodes: %w", err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
		if err != nil {
			return fmt.Errorf("encoding Machine %s: %w", m.Name, err)
		}
		old["Machine/"+m.Namespace+"/"+m.Name] = content
	}
	fleet.AddLive(machines.Items, pools.Items, nodes.Items)
	return nil
}

func (o *planOptions) print(list preview.PlanList) error {
	return o.printAs(o.output, "plans", list, func() error { return preview.Print(o.out, list, o.output == "wide") })
}
