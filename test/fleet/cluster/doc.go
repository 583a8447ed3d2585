// Package cluster makes a Kubernetes cluster of a fleet's hosts, the way an operator with a manual would: apt packages on
// hold, containerd with a configuration, kubeadm init, kubeadm join.
//
//	packages  the layer with containerd, kubelet, kubeadm and kubectl from the fleet's mirror
//	hostfiles what is written on a new host: identity, containerd, CNI, name resolution
//	kubeadm   kubeadm's configuration files
//	up        init, join, wait for Ready; each part only where it is missing
//
// Known to hold here: see runtime.go for which kubelet runs with which containerd.
package cluster
