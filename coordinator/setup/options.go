// Package setup wires the coordinator together: flags, clients, caches, controllers.
package setup

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/refit-dev/refit/coordinator/machine"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options of the coordinator.
type Options struct {
	// Kubeconfig of the cluster that has the Machines; empty: the cluster this runs in.
	Kubeconfig string
	// WorkloadKubeconfig of the cluster that has the Nodes; empty: the same cluster.
	WorkloadKubeconfig string
	// Namespace of the Machines; empty: all namespaces.
	Namespace string
	// AgentIdentity says as whom the agents of hosts come; empty: by the kubelet's certificate, and
	// by ServiceAccounts where WorkloadKubeconfig is set.
	AgentIdentity string
	// LeaderElection is on unless a single coordinator runs by hand.
	LeaderElection          bool
	LeaderElectionNamespace string
	LeaseDuration           time.Duration
	// MetricsAddress and HealthAddress to listen on; 0 turns one off.
	MetricsAddress string
	HealthAddress  string
	// ProfileAddress serves pprof; 0 or empty: none.
	ProfileAddress string
	LogLevel       string
}

// Bind declares the flags.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that has the Machines (default: the cluster this runs in)")
	fs.StringVar(&o.WorkloadKubeconfig, "workload-kubeconfig", "", "kubeconfig of the cluster that has the Nodes, with --namespace (default: the same cluster)")
	fs.StringVar(&o.Namespace, "namespace", "refit", "namespace of the Machines; empty for all")
	fs.StringVar(&o.AgentIdentity, "agent-identity", "", "as whom agents come: Node (the kubelet's certificate), ServiceAccount or Both (default: Node; ServiceAccount with --workload-kubeconfig)")
	fs.BoolVar(&o.LeaderElection, "leader-elect", true, "let only one of several coordinators lead")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "refit-system", "namespace of the leader's Lease")
	fs.DurationVar(&o.LeaseDuration, "lease-duration", 30*time.Second, "how long a leader that is gone keeps the others waiting")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics; 0 for none")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of the health probes; 0 for none")
	fs.StringVar(&o.ProfileAddress, "pprof-bind-address", "0", "address of Go's profiles, for whoever looks for what a large fleet costs; 0 for none")
	fs.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
}

// Validate says what is wrong, where, and what to do.
func (o *Options) Validate() error {
	var errs []error
	for flagName, ns := range map[string]string{"namespace": o.Namespace, "leader-election-namespace": o.LeaderElectionNamespace} {
		if ns == "" {
			continue
		}
		for _, msg := range validation.IsDNS1123Label(ns) {
			errs = append(errs, fmt.Errorf("--%s %q: %s", flagName, ns, msg))
		}
	}
	if o.WorkloadKubeconfig != "" && o.Namespace == "" {
		errs = append(errs, errors.New("--workload-kubeconfig needs --namespace: the Machines of one namespace belong to one cluster of Nodes"))
	}
	if err := o.identity().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--agent-identity %w", err))
	}
	if o.WorkloadKubeconfig != "" && o.identity().Node() {
		errs = append(errs, fmt.Errorf("--agent-identity %s: with --workload-kubeconfig the Nodes of the Machines' cluster are other hosts: use %s", o.identity(), machine.IdentityServiceAccount))
	}
	if o.LeaderElection && o.LeaderElectionNamespace == "" {
		errs = append(errs, errors.New("--leader-election-namespace is empty: name the namespace of the Lease, or set --leader-elect=false"))
	}
	if o.LeaseDuration < 5*time.Second {
		errs = append(errs, fmt.Errorf("--lease-duration %s: must be 5s or more, or a slow API server costs the lead", o.LeaseDuration))
	}
	return errors.Join(errs...)
}

// lease is the name of the leader's Lease. Of the coordinators of several workload clusters each leads its own.
func (o *Options) lease() string {
	if o.WorkloadKubeconfig == "" {
		return appName
	}
	return appName + "-" + o.Namespace
}

func (o *Options) identity() machine.Identity {
	switch {
	case o.AgentIdentity != "":
		return machine.Identity(o.AgentIdentity)
	case o.WorkloadKubeconfig != "":
		return machine.IdentityServiceAccount
	}
	return machine.IdentityNode
}

// configs returns the client configurations for Machines and for Nodes.
func (o *Options) configs() (machines, workload *rest.Config, err error) {
	if machines, err = load(o.Kubeconfig); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration for the Machines (--kubeconfig): %w", err)
	}
	workload = machines
	if o.WorkloadKubeconfig != "" {
		if workload, err = load(o.WorkloadKubeconfig); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration for the Nodes (--workload-kubeconfig): %w", err)
		}
	}
	return machines, workload, nil
}

func load(path string) (*rest.Config, error) {
	var (
		config *rest.Config
		err    error
	)
	if path == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, fmt.Errorf("loading a client configuration: %w", err)
	}
	// No limit per second: the requests that are open at a time are bounded by the number of
	// passes, and the API server keeps clients apart by itself. A request that waits in a
	// queue of our own is a machine that waits.
	config.QPS = -1
	return config, nil
}
