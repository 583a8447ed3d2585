package main

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/pkg/usage"
)

// The Nodes and their pods may be in another cluster than the Machines. Every command that
// looks at a Node or at its pods looks there.
const workloadUsage = "Kubeconfig of the cluster that has the Nodes, where the Machines are in another (default: the same cluster)"

// nodesConfig is how the Nodes' cluster is reached.
func (c *command) nodesConfig() (*rest.Config, error) {
	if c.workload == "" {
		config, err := c.flags.ToRESTConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the cluster: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.workload)
	if err != nil {
		return nil, usage.Errorf("reading the kubeconfig of the Nodes' cluster (--workload-kubeconfig %s): %w", c.workload, err)
	}
	return config, nil
}

// nodes is a client of the Nodes' cluster.
func (c *command) nodes() (client.Client, error) {
	config, err := c.nodesConfig()
	if err != nil {
		return nil, err
	}
	return connect(config)
}

// nodesKube is a client of the Nodes' cluster without a limit per second: a drain bounds how many of its requests are open.
func (c *command) nodesKube() (kubernetes.Interface, error) {
	config, err := c.nodesConfig()
	if err != nil {
		return nil, err
	}
	return unlimited(config)
}
