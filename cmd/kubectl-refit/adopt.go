package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/adopt"
	"github.com/refit-dev/refit/cli/install"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/usage"
)

type adoptOptions struct {
	*command
	apply    bool
	selector string
	output   string
}

func newAdopt(c *command) *cobra.Command {
	o := &adoptOptions{command: c}
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Write down as Machines and pools what the cluster runs now",
		Long: `Reads the cluster's Nodes and prints a Machine for each and a MachineDeployment for
each pool (control-plane, workers), at the versions that run now: nothing changes on
any host. --apply creates them. Objects that exist are never changed, so that adopting
again only adds new hosts.`,
		Example: "  kubectl refit adopt\n  kubectl refit adopt --apply",
		Args:    usage.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.apply, "apply", false, "Create the objects instead of printing them")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Adopt only the Nodes with these labels")
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "Format to print in: yaml or json")
	return cmd
}

func (o *adoptOptions) run(ctx context.Context) error {
	if err := usage.OneOf("output", o.output, "yaml", "json"); err != nil {
		return err
	}
	cl, err := o.client()
	if err != nil {
		return err
	}
	cluster, err := o.read(ctx, cl)
	if err != nil {
		return err
	}
	result := adopt.Adopt(cluster, o.namespace())
	for _, w := range result.Warnings {
		fmt.Fprintf(o.err, "warning: %s\n", w)
	}
	objects, err := documents(result)
	if err != nil {
		return err
	}
	if o.apply {
		return o.create(ctx, cl, result)
	}
	if len(objects) == 0 {
		fmt.Fprintf(o.err, "Adopted already: %s.\n", upgrade.Count(len(cluster.Nodes), "node", "nodes"))
		return nil
	}
	return printDocuments(o.out, o.output, objects)
}

// read collects what is there. Before the CRDs are installed there are no Machines.
func (o *adoptOptions) read(ctx context.Context, cl client.Client) (adopt.Cluster, error) {
	var c adopt.Cluster
	workload, err := o.nodes()
	if err != nil {
		return c, err
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return c, usage.Errorf("reading --selector %q: %w", o.selector, err)
	}
	var nodes corev1.NodeList
	if err := workload.List(ctx, &nodes, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return c, fmt.Errorf("listing the nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return c, refused{"there is no node to adopt: join one with kubeadm first, or check --selector and the kubeconfig"}
	}
	var pods corev1.PodList
	if err := workload.List(ctx, &pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"tier": "control-plane"}); err != nil {
		return c, fmt.Errorf("listing the control plane's pods: %w", err)
	}
	var machines v1alpha1.MachineList
	var pools v1alpha1.MachineDeploymentList
	for _, list := range []client.ObjectList{&machines, &pools} {
		if err := cl.List(ctx, list, client.InNamespace(o.namespace())); err != nil && !meta.IsNoMatchError(err) {
			return c, fmt.Errorf("listing what is adopted already: %w", err)
		}
	}
	return adopt.Cluster{Nodes: nodes.Items, StaticPods: pods.Items, Machines: machines.Items, Deployments: pools.Items}, nil
}

// create creates Machines before pools, so that a pool finds its machines at once.
func (o *adoptOptions) create(ctx context.Context, cl client.Client, r adopt.Result) error {
	var objects []client.Object
	for i := range r.Machines {
		objects = append(objects, &r.Machines[i])
	}
	for i := range r.Deployments {
		objects = append(objects, &r.Deployments[i])
	}
	for _, obj := range objects {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		err := cl.Create(ctx, obj, client.FieldOwner(install.FieldManager))
		switch {
		case apierrors.IsAlreadyExists(err):
			fmt.Fprintf(o.out, "%s %s exists, left as it is\n", kind, obj.GetName())
		case meta.IsNoMatchError(err):
			return refused{"Refit is not installed in this cluster: run kubectl refit install first"}
		case apierrors.IsNotFound(err):
			return refused{fmt.Sprintf("namespace %s does not exist: run kubectl refit install, or create it", o.namespace())}
		case err != nil:
			return fmt.Errorf("creating %s %s: %w", kind, obj.GetName(), err)
		default:
			fmt.Fprintf(o.out, "%s %s created\n", kind, obj.GetName())
		}
	}
	if len(objects) == 0 {
		fmt.Fprintln(o.out, "nothing to do: every node is adopted already")
	}
	return nil
}

// documents are the objects as a person would write them: without empty status and timestamps.
func documents(r adopt.Result) ([]map[string]any, error) {
	var out []map[string]any
	add := func(object any) error {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encoding an object: %w", err)
		}
		var m map[string]any
		if err := yaml.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("decoding an object: %w", err)
		}
		delete(m, "status")
		if metadata, ok := m["metadata"].(map[string]any); ok {
			delete(metadata, "creationTimestamp")
		}
		out = append(out, m)
		return nil
	}
	for i := range r.Machines {
		if err := add(&r.Machines[i]); err != nil {
			return nil, err
		}
	}
	for i := range r.Deployments {
		if err := add(&r.Deployments[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
