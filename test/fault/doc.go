// Package fault breaks a real host while the executor works on it: processes and hosts are
// killed at every write of the journal, package managers are killed and starved, new
// kubelets do not come up. In the end the host is the old one or the new one, and says which.
//
// The host is a container of its own with the real systemd, apt, dpkg, containerd and
// kubelet; the kubelet stands alone, without an API server, and runs a static pod. The
// test stands where the agent is: it hands an operation to the executor's unit and, as
// the agent does, starts that unit again when it has ended with its journal open.
package fault
