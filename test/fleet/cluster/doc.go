// Package cluster makes a Kubernetes cluster of a fleet's hosts, the way an operator with a manual would: apt packages on
// hold, containerd with a configuration, kubeadm init, kubeadm join.
//
//	packages  the layer with containerd, kubelet, kubeadm and kubectl from the fleet's mirror
//	hostfiles what is written on a new host: identity, containerd, CNI, name resolution
//	kubeadm   kubeadm's configuration files
//	up        init, join, wait for Ready; each part only where it is missing
//
// Kubelets v1.36.3 and v1.37.2 run with containerd 1.7 (seen with 1.7.35) as well as with 2.x: it answers the CRI call
// RuntimeConfig with Unimplemented, upon which they log that they fall back to cgroupDriver of their own configuration, and
// count it as kubelet_cri_losing_support{version="1.37.0"} and {version="1.38.0"}: the release that will refuse moved on by one.
// kubeadm v1.37 warns of the same (ContainerRuntimeVersion) and names 1.38.
package cluster
