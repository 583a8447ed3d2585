package setup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/handover"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// cacheSync is generous: the only control plane may be in the middle of its upgrade.
	cacheSync = 10 * time.Minute
	// passTimeout bounds one reconcile against an API server that does not answer.
	passTimeout = time.Minute
)

// Run runs the coordinator until ctx ends, or until it has lost the lead: what it held
// in memory may then be wrong, so the process has to end and begin anew.
func Run(ctx context.Context, o Options, log logr.Logger) error {
	machines, workload, err := o.configs()
	if err != nil {
		return err
	}
	return RunWith(ctx, o, log, machines, workload)
}

// RunWith is Run with the client configurations given.
func RunWith(ctx context.Context, o Options, log logr.Logger, machines, workload *rest.Config) error {
	ctrl.SetLogger(log)
	outer := ctx
	ctx, end := context.WithCancelCause(logr.NewContext(ctx, log))
	defer end(nil)
	for _, c := range apis(machines, workload) {
		if err := awaitAPI(ctx, log, c, c == machines); err != nil {
			return err
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(machines, o.managerOptions(ctx, log, scheme))
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	nodes, err := nodesCluster(mgr, machines, workload)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, nodes, o.identity(), end); err != nil {
		return err
	}
	if err := addProbes(mgr); err != nil {
		return err
	}
	log.Info("Starting coordinator", "namespace", o.Namespace, "leaderElection", o.LeaderElection)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the coordinator: %w", err)
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errHandedOver):
		return o.awaitSuccessor(outer, machines)
	case cause != nil && !errors.Is(cause, context.Canceled):
		return fmt.Errorf("running the coordinator: %w", cause)
	}
	return nil
}

// apis are the API servers that there are to wait for.
func apis(machines, workload *rest.Config) []*rest.Config {
	if machines == workload {
		return []*rest.Config{machines}
	}
	return []*rest.Config{machines, workload}
}

// awaitSuccessor keeps this process, which would begin anew at once, from taking the lead again that it has given away.
func (o *Options) awaitSuccessor(ctx context.Context, machines *rest.Config) error {
	client, err := kubernetes.NewForConfig(machines)
	if err != nil {
		return fmt.Errorf("setting up a client for the leader's Lease: %w", err)
	}
	handover.AwaitSuccessor(ctx, client, o.LeaderElectionNamespace, o.lease(), o.LeaseDuration)
	return nil
}

// awaitAPI waits for the API server for as long as it takes. A coordinator that ended
// because the only API server is being upgraded must not fall into a crash loop, whose
// back-off would outlast the upgrade. Where it has the Machines, their kinds are waited for as
// well: one that has just started serves what is built in before what is defined.
func awaitAPI(ctx context.Context, log logr.Logger, c *rest.Config, kinds bool) error {
	probe := rest.CopyConfig(c)
	probe.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(probe)
	if err != nil {
		return fmt.Errorf("setting up a client: %w", err)
	}
	for wait := time.Second; ; wait = min(2*wait, 10*time.Second) {
		if _, err = client.ServerVersion(); err == nil && kinds {
			err = serves(client)
		}
		if err == nil {
			return nil
		}
		log.Info("Waiting for the API server", "error", err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server: %w", ctx.Err())
		case <-time.After(wait):
		}
	}
}

// serves says that the API server has all of Refit's kinds.
func serves(client discovery.DiscoveryInterface) error {
	version := v1alpha1.GroupVersion.String()
	list, err := client.ServerResourcesForGroupVersion(version)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking for the kinds of %s: %w", version, err)
	}
	for _, name := range []string{"machines", "machinedeployments", "machinedisruptionbudgets", "ledgers"} {
		if list == nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
			return fmt.Errorf("%s of %s are not served yet; if that lasts, apply the CustomResourceDefinitions: kubectl refit install", name, version)
		}
	}
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Kubernetes kinds: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Refit kinds: %w", err)
	}
	return scheme, nil
}

func (o *Options) managerOptions(ctx context.Context, log logr.Logger, scheme *runtime.Scheme) manager.Options {
	renew, retry := o.LeaseDuration*2/3, o.LeaseDuration/8
	opts := manager.Options{
		Scheme: scheme, Logger: log,
		BaseContext:    func() context.Context { return ctx },
		LeaderElection: o.LeaderElection, LeaderElectionID: o.lease(), LeaderElectionNamespace: o.LeaderElectionNamespace,
		LeaseDuration: &o.LeaseDuration, RenewDeadline: &renew, RetryPeriod: &retry,
		// The process ends right after: the next leader need not wait for the lease to run out.
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		PprofBindAddress:              o.ProfileAddress,
		Controller:                    config.Controller{CacheSyncTimeout: cacheSync, ReconciliationTimeout: passTimeout},
		Client:                        client.Options{FieldOwner: "refit-coordinator"},
	}
	if o.Namespace != "" {
		opts.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return opts
}

// nodesCluster is the cluster that has the Nodes, with a cache of its own.
func nodesCluster(mgr manager.Manager, machines, workload *rest.Config) (cluster.Cluster, error) {
	if machines == workload {
		return mgr, nil
	}
	nodes, err := cluster.New(workload, func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
	if err != nil {
		return nil, fmt.Errorf("setting up the nodes' cluster: %w", err)
	}
	if err := mgr.Add(nodes); err != nil {
		return nil, fmt.Errorf("adding the nodes' cluster: %w", err)
	}
	return nodes, nil
}

func addProbes(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health probe: %w", err)
	}
	ready := func(*http.Request) error { return nil } // a coordinator that does not lead is ready to
	if err := mgr.AddReadyzCheck("ready", ready); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}
