// Package etcd asks the etcd that this host's control plane stores in, with the host's own
// certificate: who its members are, how each is by its own endpoint, and for a snapshot. It is
// linked into the executor only.
package etcd
