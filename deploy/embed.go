// Package deploy holds what Refit installs into a cluster: CRDs, admission policies
// and the coordinator. The files are the same ones that can be applied by hand.
package deploy

import "embed"

// Manifests are the YAML files of this folder that belong into every cluster.
//
//go:embed crds policy coordinator
var Manifests embed.FS

// DaemonSet are the YAML files of the agent's form as a pod on every host, which go on top of Manifests.
//
//go:embed daemonset
var DaemonSet embed.FS
