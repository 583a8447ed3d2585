package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/forecast"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/usage"
)

type forecastOptions struct {
	*command
	overrides       forecast.Overrides
	force, emptyDir bool
	timeout         time.Duration
	output          string
}

func newForecast(c *command) *cobra.Command {
	o := &forecastOptions{command: c}
	cmd := &cobra.Command{
		Use:   "forecast [NODE | machine/NAME | machinedeployment/NAME]...",
		Short: "Say whether drains would succeed, and what is in their way; evict nothing",
		Long: `Says of each node, of all when none is named, what its drain would meet: how many pods
go at once, which wait and for what, and which can never go, by which policy or budget.
Nothing is evicted or cordoned, and it works without Refit in the cluster.

The drain of a node with a Machine is Refit's, under spec.drain of that Machine. That of
any other node is the one of kubectl refit drain. A flag given here counts before both.

Exit codes: 0 every drain can succeed; 1 a fault; 2 bad input; 3 one never can, as things are.`,
		Example: "  kubectl refit forecast\n  kubectl refit forecast worker-1 -o wide\n  kubectl refit forecast machinedeployment/workers --force --delete-emptydir-data=false",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.readPolicies(cmd.Flags().Changed)
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "Whether pods without a controller, which nothing creates again, are evicted (spec.drain.unmanagedPods)")
	f.BoolVar(&o.emptyDir, "delete-emptydir-data", false, "Whether pods with emptyDir volumes, whose data is lost, are evicted (spec.drain.emptyDir)")
	f.DurationVar(&o.timeout, "timeout", 0, "How long the drain tries; 0 for no limit (spec.drain.timeout, or 30m, when not given)")
	f.StringVar(&o.overrides.OnTimeout, "on-timeout", "", "What is done about pods that are left at the timeout: Fail, Proceed without them, or Delete (spec.drain.onTimeout, or Fail, when not given)")
	f.BoolVar(&o.overrides.Reboot, "reboot", false, "Foresee the drain before a reboot, which waits until volumes are detached too")
	f.StringVarP(&o.output, "output", "o", "table", "Format to print in: table, wide, yaml or json")
	return cmd
}

// readPolicies are the flags that were given: any other leaves it to the Machine.
func (o *forecastOptions) readPolicies(given func(flag string) bool) {
	action := map[bool]string{true: string(drain.ActionEvict), false: string(drain.ActionFail)}
	if given("force") {
		o.overrides.UnmanagedPods = action[o.force]
	}
	if given("delete-emptydir-data") {
		o.overrides.EmptyDir = action[o.emptyDir]
	}
	if given("timeout") {
		o.overrides.Timeout = cmp.Or(o.timeout, noLimit)
	}
}

func (o *forecastOptions) check() error {
	if o.timeout < 0 {
		return usage.Errorf("--timeout is 0 or more")
	}
	for _, f := range []struct {
		flag, value string
		allowed     []string
	}{
		{"output", o.output, []string{"table", "wide", "yaml", "json"}},
		{"on-timeout", o.overrides.OnTimeout, []string{"", "Fail", "Proceed", "Delete"}},
	} {
		if err := usage.OneOf(f.flag, f.value, f.allowed...); err != nil {
			return err
		}
	}
	return nil
}

func (o *forecastOptions) run(ctx context.Context, names []string) error {
	if err := o.check(); err != nil {
		return err
	}
	cluster, err := o.readForForecast(ctx)
	if err != nil {
		return err
	}
	targets, without, err := cluster.Select(names)
	var missing forecast.NotFound
	switch {
	case errors.As(err, &missing):
		return usage.Errorf("%w", err)
	case err != nil:
		return err
	}
	for _, name := range without {
		fmt.Fprintf(o.err, "Machine %s has no Node, and so nothing to drain.\n", name)
	}
	requests := make([]drain.ForecastRequest, 0, len(targets))
	for _, t := range targets {
		requests = append(requests, cluster.Request(t, o.overrides))
	}
	kube, err := o.nodesKube()
	if err != nil {
		return err
	}
	forecasts, err := drain.NewCluster(kube).Forecasts(ctx, requests)
	if err != nil {
		return fmt.Errorf("foreseeing the drains: %w", err)
	}
	list := forecast.New(targets, forecasts)
	if err := o.print(list); err != nil {
		return err
	}
	if never := list.Never(); len(never) > 0 {
		return refused{fmt.Sprintf("%d of %d nodes can never be drained as things are: %s", len(never), len(targets), strings.Join(never, ", "))}
	}
	return nil
}

// readForForecast reads the nodes, and what Refit knows of them where it is installed.
func (o *forecastOptions) readForForecast(ctx context.Context) (forecast.Cluster, error) {
	var c forecast.Cluster
	cl, err := o.client()
	if err != nil {
		return c, err
	}
	workload, err := o.nodes()
	if err != nil {
		return c, err
	}
	var nodes corev1.NodeList
	if err := workload.List(ctx, &nodes); err != nil {
		return c, fmt.Errorf("listing the nodes: %w", err)
	}
	var machines v1alpha1.MachineList
	var pools v1alpha1.MachineDeploymentList
	for _, list := range []client.ObjectList{&machines, &pools} {
		if err := cl.List(ctx, list, client.InNamespace(o.namespace())); err != nil && !meta.IsNoMatchError(err) {
			return c, fmt.Errorf("listing pools and machines: %w", err)
		}
	}
	return forecast.Cluster{Nodes: nodes.Items, Machines: machines.Items, Pools: pools.Items}, nil
}

func (o *forecastOptions) print(list forecast.List) error {
	return o.printAs(o.output, "forecasts", list, func() error { return forecast.Print(o.out, list, o.output == "wide") })
}

// kube is a client of the Machines' cluster.
func (c *command) kube() (kubernetes.Interface, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	return unlimited(config)
}

func unlimited(config *rest.Config) (kubernetes.Interface, error) {
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return kube, nil
}
