package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	clidrain "github.com/refit-dev/refit/cli/drain"
	"github.com/refit-dev/refit/cli/forecast"
	"github.com/refit-dev/refit/pkg/drain"
	"github.com/refit-dev/refit/pkg/usage"
)

type drainOptions struct {
	*command
	emptyDir, force  bool
	timeout          time.Duration
	podSelector      string
	selector         string
	dryRun           string
	skipWaitSeconds  int
	keepCordon       bool
	forceOwnership   bool
	output           string
	ignored, noEvict bool
	graceSeconds     int
	heartbeat        time.Duration
	nodes            []corev1.Node
	pods             labels.Selector
}

func newDrain(c *command) *cobra.Command {
	o := &drainOptions{command: c, heartbeat: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "drain NODE... | -l SELECTOR",
		Short: "Drain nodes by hand: cordon, evict within budgets, say what is in the way",
		Long: `Cordons the nodes, as kubectl cordon does, and evicts their pods, one node after another.
A pod that a PodDisruptionBudget holds goes as soon as the budget has room for it. A
drain that can never succeed is refused before any pod is evicted. It works without
Refit in the cluster; where Refit is upgrading a node at the moment, it is refused.

A drained node stays cordoned until kubectl uncordon. A node that could not be drained,
or whose drain is interrupted (Ctrl-C), is uncordoned, unless it was cordoned before or
--keep-cordon is given. Pods of DaemonSets and static pods always stay. Each pod has its
own terminationGracePeriodSeconds to end.

Times are in UTC. Exit codes: 0 drained; 1 a fault or an interruption; 2 bad input;
3 pods stand in the way, or the node is Refit's or gone.`,
		Example: "  kubectl refit drain worker-1\n  kubectl refit drain worker-1 worker-2 --delete-emptydir-data --timeout 1h\n  kubectl refit drain worker-1 --dry-run=server",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.emptyDir, "delete-emptydir-data", false, "Evict pods with emptyDir volumes too, whose data is lost; without this flag a node with such a pod is not drained")
	f.BoolVar(&o.force, "force", false, "Evict pods without a controller too, which nothing creates again; without this flag a node with such a pod is not drained")
	f.DurationVar(&o.timeout, "timeout", drain.DefaultTimeout, "How long to try for each node; 0 for no limit")
	f.StringVar(&o.podSelector, "pod-selector", "", "Evict only pods with these labels, such as app=web; all others stay")
	f.StringVarP(&o.selector, "selector", "l", "", "Drain the nodes with these labels, such as rack=r7, instead of naming them")
	f.StringVar(&o.dryRun, "dry-run", "none", "Change nothing; client: say what the drain would meet; server: also have the API server try each eviction without carrying it out; none: drain")
	f.Lookup("dry-run").NoOptDefVal = "client"
	f.IntVar(&o.skipWaitSeconds, "skip-wait-for-delete-timeout", 0, "Go on without a pod that was to have ended more than this many seconds ago; 0 waits for each pod")
	f.BoolVar(&o.keepCordon, "keep-cordon", false, "Leave a node cordoned that could not be drained, instead of uncordoning it")
	f.BoolVar(&o.forceOwnership, "force-ownership", false, "Drain a node even while Refit is upgrading it")
	f.StringVarP(&o.output, "output", "o", "", "json prints a line of JSON for each event; text for people when not given")
	f.BoolVar(&o.ignored, "ignore-daemonsets", true, "Taken for the sake of kubectl drain's command lines: pods of DaemonSets always stay")
	f.BoolVar(&o.noEvict, "disable-eviction", false, "Always refused: it would delete pods against their PodDisruptionBudgets")
	f.IntVar(&o.graceSeconds, "grace-period", -1, "Anything but -1 is refused: each pod has its own terminationGracePeriodSeconds")
	return cmd
}

// noLimit is a timeout that nobody lives to see.
const noLimit = 10 * 365 * 24 * time.Hour

func (o *drainOptions) check(names []string) (err error) {
	switch {
	case o.noEvict:
		return usage.Errorf("--disable-eviction is refused: it deletes pods past their budgets; change the budget that is in the way, which kubectl refit forecast names")
	case o.graceSeconds != -1:
		return usage.Errorf("--grace-period %d is refused: a pod knows best how long it needs to end; change terminationGracePeriodSeconds of the pod, or leave the flag out", o.graceSeconds)
	case !o.ignored:
		return usage.Errorf("--ignore-daemonsets=false is refused: their controller would put the pods back onto the node at once")
	case (len(names) == 0) == (o.selector == ""):
		return usage.Errorf("name the nodes to drain, or select them with -l, and not both")
	case o.timeout < 0 || o.skipWaitSeconds < 0:
		return usage.Errorf("--timeout and --skip-wait-for-delete-timeout are 0 or more")
	}
	if o.pods, err = labels.Parse(o.podSelector); err != nil {
		return usage.Errorf("reading --pod-selector %q: %w", o.podSelector, err)
	}
	if err := usage.OneOf("output", o.output, "", "json"); err != nil {
		return err
	}
	return usage.OneOf("dry-run", o.dryRun, "none", "client", "server")
}

func (o *drainOptions) library() drain.Options {
	opts := drain.Options{
		Timeout: o.timeout, EmptyDir: drain.ActionFail, UnmanagedPods: drain.ActionFail,
		SkipWaitForDeleteTimeout: time.Duration(o.skipWaitSeconds) * time.Second,
	}
	if o.timeout == 0 {
		opts.Timeout = noLimit
	}
	if o.emptyDir {
		opts.EmptyDir = drain.ActionEvict
	}
	if o.force {
		opts.UnmanagedPods = drain.ActionEvict
	}
	if !o.pods.Empty() {
		opts.IsOwnPod = func(p *corev1.Pod) bool { return !o.pods.Matches(labels.Set(p.Labels)) }
	}
	return opts
}

func (o *drainOptions) run(ctx context.Context, names []string) error {
	if err := o.check(names); err != nil {
		return err
	}
	cl, err := o.client()
	if err != nil {
		return err
	}
	workload, err := o.command.nodes()
	if err != nil {
		return err
	}
	targets, err := o.targets(ctx, workload, names)
	if err != nil {
		return err
	}
	if !o.forceOwnership {
		if err := o.refuseOwned(ctx, cl, targets); err != nil {
			return err
		}
	}
	kube, err := o.nodesKube()
	if err != nil {
		return err
	}
	if o.dryRun != "none" {
		return o.rehearse(ctx, targets)
	}
	nodes := make([]string, 0, len(targets))
	for _, t := range targets {
		nodes = append(nodes, t.Node.Name)
	}
	for _, name := range o.onlyNodes(targets) {
		fmt.Fprintf(o.err, "warning: node %s: no other node takes its pods now (NoCapacity), and they stay pending until one does\n", name)
	}
	runner := &clidrain.Runner{Kube: kube, Options: o.library(), Report: o.reporter(), KeepCordon: o.keepCordon, Heartbeat: o.heartbeat}
	err = runner.Run(ctx, nodes)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %w", err)
	case clidrain.Blocked(err):
		return refused{"not every node was drained: " + err.Error()}
	}
	return err
}

// targets are the nodes that are named or selected.
func (o *drainOptions) targets(ctx context.Context, cl client.Client, names []string) ([]forecast.Target, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, usage.Errorf("reading --selector %q: %w", o.selector, err)
	}
	var list corev1.NodeList
	if err := cl.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	o.nodes = list.Items
	if o.selector != "" {
		for i := range o.nodes {
			if selector.Matches(labels.Set(o.nodes[i].Labels)) {
				names = append(names, o.nodes[i].Name)
			}
		}
		if len(names) == 0 {
			return nil, usage.Errorf("no node has the labels %q", o.selector)
		}
	}
	targets, _, err := forecast.Cluster{Nodes: o.nodes}.Select(names)
	var missing forecast.NotFound
	if errors.As(err, &missing) {
		missing.Hint = "name a Node"
		return nil, usage.Errorf("%w", missing)
	}
	return targets, err
}

// onlyNodes are the targets whose pods no node takes once all of the targets are cordoned.
func (o *drainOptions) onlyNodes(targets []forecast.Target) []string {
	after := forecast.Cluster{Nodes: slices.Clone(o.nodes)}
	for i := range after.Nodes {
		if slices.ContainsFunc(targets, func(t forecast.Target) bool { return t.Node.Name == after.Nodes[i].Name }) {
			after.Nodes[i].Spec.Unschedulable = true
		}
	}
	var only []string
	for _, t := range targets {
		if after.Request(t, forecast.Overrides{}).Options.OnlyNode {
			only = append(only, t.Node.Name)
		}
	}
	return only
}

// refuseOwned keeps away from what Refit does at the moment, where it is installed.
func (o *drainOptions) refuseOwned(ctx context.Context, cl client.Client, targets []forecast.Target) error {
	var ledgers v1alpha1.LedgerList
	err := cl.List(ctx, &ledgers)
	if apierrors.IsForbidden(err) {
		err = cl.List(ctx, &ledgers, client.InNamespace(o.namespace()))
	}
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(o.err, "warning: whether Refit works on these nodes may not be asked (list on ledgers.refit.dev); only its cordons are seen\n")
	case err != nil && !meta.IsNoMatchError(err):
		return fmt.Errorf("listing Refit's ledgers: %w", err)
	}
	var owned []string
	for _, t := range targets {
		if why := clidrain.Owned(t.Node, ledgers.Items); why != "" {
			owned = append(owned, why)
		}
	}
	if len(owned) == 0 {
		return nil
	}
	return refused{strings.Join(owned, "; ") + ": wait until it has ended (kubectl refit status), or drain all the same with --force-ownership"}
}

// rehearse shows what would be done.
func (o *drainOptions) rehearse(ctx context.Context, targets []forecast.Target) error {
	kube, err := o.nodesKube()
	if err != nil {
		return err
	}
	only := o.onlyNodes(targets)
	requests := make([]drain.ForecastRequest, 0, len(targets))
	for _, t := range targets {
		opts := o.library()
		opts.OnlyNode = slices.Contains(only, t.Node.Name)
		requests = append(requests, drain.ForecastRequest{Node: t.Node.Name, Options: opts})
	}
	forecasts, err := drain.NewCluster(kube).Forecasts(ctx, requests)
	if err != nil {
		return fmt.Errorf("foreseeing the drains: %w", err)
	}
	list := forecast.New(targets, forecasts)
	shown := &forecastOptions{command: o.command, output: "table"}
	if o.output != "" {
		shown.output = o.output
	}
	if err := shown.print(list); err != nil {
		return err
	}
	never := list.Never()
	if o.dryRun == "server" {
		for _, f := range forecasts {
			n, err := clidrain.Rehearse(ctx, kube, f, o.err)
			if err != nil {
				return err
			}
			if n > 0 && !slices.ContainsFunc(never, func(s string) bool { return strings.HasPrefix(s, f.Node+" ") }) {
				never = append(never, fmt.Sprintf("%s (%d refused)", f.Node, n))
			}
		}
	}
	if len(never) > 0 {
		return refused{fmt.Sprintf("%d of %d nodes would not be drained: %s", len(never), len(targets), strings.Join(never, ", "))}
	}
	return nil
}

func (o *drainOptions) reporter() clidrain.Reporter {
	if o.output == "json" {
		return clidrain.JSON{Out: o.out, Now: time.Now}
	}
	colour := term.TTY{Out: o.out}.IsTerminalOut() && os.Getenv("NO_COLOR") == ""
	return clidrain.Text{Out: o.out, Colour: colour}
}
