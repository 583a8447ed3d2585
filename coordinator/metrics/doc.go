// Package metrics tells Prometheus how the fleet is. Everything is counted from the caches
// when somebody asks, by one Collector: nothing is kept up to date in between, and a rollout
// costs nothing for it. No series is of one machine: each label's values are bounded by what
// an operator creates (namespaces, pools, budgets) or by this package.
package metrics
