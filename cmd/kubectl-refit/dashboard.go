package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/dashboard"
	"github.com/refit-dev/refit/pkg/usage"
)

type dashboardOptions struct {
	*command
	port        int
	topologyKey string
}

func newDashboard(c *command) *cobra.Command {
	o := &dashboardOptions{command: c}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a page for the browser on this desk: the fleet, the rollout, and why a machine waits",
		Long: `Serves a page on 127.0.0.1 that shows the machines by topology domain, coloured by phase or by
version, what was done on each and when, and of each what kubectl refit why says. It is live: one
watch of each kind feeds it, with the rights of your own kubeconfig, however many browsers look.
The page only shows: it has no verbs. Its address holds a token that is new each time; whoever has
it, and can reach this desk's own address, sees what you may see. Ctrl-C ends it.

Exit codes: 0 ended; 1 a fault; 2 bad input; 3 refused.`,
		Example: "  kubectl refit dashboard\n  kubectl refit dashboard --port 8081 --topology-key example.com/rack",
		Args:    usage.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "Port on 127.0.0.1; 0 takes one that is free")
	cmd.Flags().StringVar(&o.topologyKey, "topology-key", corev1.LabelTopologyZone, "Label of Nodes that names the domain by which machines are grouped")
	return cmd
}

type watchedKind struct {
	one  client.Object
	many client.ObjectList
}

// dashboardKinds are those that are watched where the Machines are: what the coordinator reads before it judges.
func dashboardKinds() []watchedKind {
	return []watchedKind{
		{&v1alpha1.Machine{}, &v1alpha1.MachineList{}}, {&v1alpha1.MachineDeployment{}, &v1alpha1.MachineDeploymentList{}},
		{&v1alpha1.MachineDisruptionBudget{}, &v1alpha1.MachineDisruptionBudgetList{}}, {&v1alpha1.Ledger{}, &v1alpha1.LedgerList{}},
	}
}

func nodeKinds() []watchedKind { return []watchedKind{{&corev1.Node{}, &corev1.NodeList{}}} }

func (o *dashboardOptions) run(ctx context.Context) error {
	if o.port < 0 || o.port > 65535 {
		return usage.Errorf("--port %d is none: it is 1 to 65535, or 0 for one that is free", o.port)
	}
	if err := o.readable(ctx); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("listening: %w (--port names another one)", err)
	}
	defer listener.Close()
	hub := dashboard.NewHub(o.namespace(), o.topologyKey)
	reader, nodes, err := o.watchAll(ctx, hub)
	if err != nil {
		return err
	}
	return o.serve(ctx, listener, hub, reader, nodes)
}

// readable asks for one object of each kind, so that what is refused is said at once.
func (o *dashboardOptions) readable(ctx context.Context) error {
	machines, err := o.client()
	if err != nil {
		return err
	}
	nodes, err := o.nodes()
	if err != nil {
		return err
	}
	for _, kind := range dashboardKinds() {
		if err := machines.List(ctx, kind.many, client.InNamespace(o.namespace()), client.Limit(1)); err != nil {
			return explained(fmt.Errorf("listing what the page shows: %w", err))
		}
	}
	if err := nodes.List(ctx, &corev1.NodeList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("listing what the page shows: %w", err)
	}
	return nil
}

// watchAll feeds the hub, and returns where Machines and Nodes are read from: two caches also where they are in one cluster.
func (o *dashboardOptions) watchAll(ctx context.Context, hub *dashboard.Hub) (machines, nodes client.Reader, err error) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the cluster: %w", err)
	}
	if machines, err = o.watch(ctx, config, hub, dashboardKinds()); err != nil {
		return nil, nil, err
	}
	if config, err = o.nodesConfig(); err != nil {
		return nil, nil, err
	}
	nodes, err = o.watch(ctx, config, hub, nodeKinds())
	return machines, nodes, err
}

// watch feeds the hub with one watch of each kind, and returns when it has all that there is.
func (o *dashboardOptions) watch(ctx context.Context, config *rest.Config, hub *dashboard.Hub, all []watchedKind) (client.Reader, error) {
	log.SetLogger(logr.Discard())
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dashboard.Observe(next, hub.Trouble) })
	known, err := cache.New(config, cache.Options{
		Scheme: kinds, DefaultNamespaces: map[string]cache.Config{o.namespace(): {}},
		DefaultTransform: cache.TransformStripManagedFields(), ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	go func() { _ = known.Start(ctx) }() // it ends with the context, and otherwise tries again by itself
	var arrived []toolscache.InformerSynced
	for _, kind := range all {
		informer, err := known.GetInformer(ctx, kind.one)
		if err != nil {
			return nil, explained(fmt.Errorf("watching what the page shows: %w", err))
		}
		events, err := informer.AddEventHandler(feedDashboard(hub))
		if err != nil {
			return nil, fmt.Errorf("watching what the page shows: %w", err)
		}
		arrived = append(arrived, events.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), arrived...) {
		return nil, fmt.Errorf("reading the namespace: %w", context.Cause(ctx))
	}
	return known, nil
}

// feedDashboard hands what a watch brings to the hub.
func feedDashboard(hub *dashboard.Hub) toolscache.ResourceEventHandler {
	put := func(o any) {
		if o, ok := o.(client.Object); ok {
			hub.Put(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, o any) { put(o) },
		DeleteFunc: func(o any) {
			if last, missed := o.(toolscache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			if o, ok := o.(client.Object); ok {
				hub.Remove(o)
			}
		},
	}
}

func (o *dashboardOptions) serve(ctx context.Context, listener net.Listener, hub *dashboard.Hub, reader, nodes client.Reader) error {
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	token, host := dashboard.NewToken(), "127.0.0.1:"+port
	server := &http.Server{
		Handler: dashboard.Handler(dashboard.Config{
			Hub: hub, Token: token, Hosts: []string{host, "localhost:" + port}, Why: dashboard.Why(reader, nodes, o.namespace()),
		}),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintf(o.out, "http://%s/%s/\n", host, token)
	fmt.Fprintf(o.err, "This page shows namespace %s to whoever has its address. It changes nothing. Ctrl-C ends it.\n", o.namespace())
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}
