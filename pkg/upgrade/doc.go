// Package upgrade decides what would change on a host and how it gets there. It is
// pure: no client, no clock, no files, no exec. The agent, the coordinator and the
// CLI all call it, so that what is shown before is what is done later.
//
//	facts (agent/host probes) ─┐
//	assignment (coordinator)  ─┼─> NewPlan ──> steps as data ──> executor
//	candidates (package index)─┘      └─────> *Blocked: reason, message, terminal or passing
//
// For a fleet it says what each machine becomes next, under the version-skew policy:
//
//	every host's versions ──> NewView ──> NextTarget ──> the assignment of one hop
//	                                 └──> Hops: the whole way, one window after another
//
// Where to read:
//
//	plan.go             the order of a window; each part adds its steps
//	check.go            what is refused before anything is planned
//	plan_kubernetes.go  kubeadm, runtime, kubelet, holds          plan_os.go  packages, reboot
//	findings*.go        what is found about the host, and what of it blocks
//	sources.go          which repositories a hop needs            resolve.go  version → package
//	next.go             the next hop of one machine               allowed.go  the skew policy
//	hops.go             the whole way of a fleet                  uptodate.go wish against observation
//	version.go, runtime_version.go, deb.go, rpm.go                versions, parsed once, at the edge
package upgrade
