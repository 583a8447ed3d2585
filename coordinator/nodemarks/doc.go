// Package nodemarks keeps what Nodes say in Refit's name besides cordons: it reads the
// whole fleet of a namespace, works out which marks each node is to carry, and writes
// those that differ, a few in a second. Nothing is decided on these marks: one that is
// late costs an eviction more, and no more than that.
package nodemarks
