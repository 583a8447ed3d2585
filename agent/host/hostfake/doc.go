// Package hostfake is a host for tests: what is on disk and what runs are two things,
// as on a real one. A restart makes a unit run what is on disk; a package transaction
// stops half-way when it is told to; kubeadm moves one component after the other.
// Every call is a point at which a test may fail it, or end the process that made it.
package hostfake
