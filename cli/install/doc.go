// Package install puts Refit into a cluster and takes it out again: CRDs, admission
// policies and the coordinator, in the order in which they depend on each other.
package install
