// Package binding holds a host to one cluster, namespace and Machine. What it is bound to is in the
// state directory; another one is refused until `refit-agent leave`, so that a kubeconfig that was
// replaced does not make a host of one cluster follow the Machine of its name in another.
//
//	/etc/refit/agent.yaml               which kubeconfig, namespace and Machine (a person, or join)
//	/etc/refit/kubeconfig               address and CA of a management cluster (join)
//	/var/lib/refit/credentials/token    the token of refit-machine-NAME (join, then the agent)
//	/var/lib/refit/bound.json           the cluster that was met first (the agent)
package binding
