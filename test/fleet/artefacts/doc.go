// Package artefacts obtains everything a fleet is made of: Kubernetes, etcd and containerd binaries, signed apt
// repositories, images and the base root filesystem of the hosts.
//
// All of it lives in a cache outside the checkout. An entry of the cache is a directory that appears by one rename when
// it is complete, and never changes after that:
//
//	kubernetes/v1.37.2/     bin/, images.txt (what this kubeadm wants)     mirror, else built from Go modules
//	etcd/v3.6.0/            bin/                                           built from Go modules
//	containerd/v2.4.2/      bin/                                           built from Go modules
//	rootfs/<recipe>/        root/                                          mmdebstrap, from the machine's own apt sources
//	keyring/v1/             private.gpg, public.gpg                        generated once
//	debs/<what>-<recipe>/   *.deb                                          packed from the binaries
//	apt/<content>/          kubernetes/v1.37/deb/, containerd/deb/         indexed and signed
//	images/<name>-<recipe>/ image.tar                                      docker-save archives
//
// Ensure makes what is missing, in that order, one thing at a time; Estimate says beforehand what that will be.
package artefacts
