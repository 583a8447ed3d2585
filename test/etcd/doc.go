// Package etcd runs clusters of real etcd members on the loopback address, with TLS and in the
// layout of kubeadm: each member has a root of its own, with its static pod manifest and its
// certificates below /etc/kubernetes.
package etcd
