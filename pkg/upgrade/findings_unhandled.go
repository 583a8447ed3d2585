package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// Unhandled says what in a spec no plan carries out, so that nobody takes it for done: with
// a plan or without one.
func Unhandled(spec v1alpha1.MachineSpec) []Finding {
	var out []Finding
	if n := spec.Node; n != nil && len(n.Labels)+len(n.Taints) > 0 {
		out = append(out, warning(FindingNodeIgnored, "spec.node is not applied by this version of Refit: set labels and taints with kubectl label and kubectl taint"))
	}
	return out
}
