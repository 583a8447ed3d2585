package upgrade

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Names of the packages that Refit moves for a version in spec.
const (
	packageKubelet      = "kubelet"
	packageKubeadm      = "kubeadm"
	packageKubectl      = "kubectl"
	packageCRIO         = "cri-o"
	packageContainerd   = "containerd"
	packageContainerdIO = "containerd.io"

	packageCRITools      = "cri-tools"
	packageKubernetesCNI = "kubernetes-cni"
	packageRunc          = "runc"

	packageRefit = "refit-agent"

	packageEtcdServer = "etcd-server"
	packageEtcd       = "etcd"
	packageEtcdClient = "etcd-client"
)

// kubernetesPackages are published together, in one repository per minor.
var kubernetesPackages = []string{packageKubelet, packageKubeadm, packageKubectl}

// runtimePackages are the packages that a runtime may be installed from, the preferred one first.
var runtimePackages = map[v1alpha1.RuntimeName][]string{
	v1alpha1.RuntimeContainerd: {packageContainerdIO, packageContainerd},
	v1alpha1.RuntimeCRIO:       {packageCRIO},
}

// etcdPackages are those that etcd may be installed from, the one with the server first. They move together.
var etcdPackages = []string{packageEtcdServer, packageEtcd, packageEtcdClient}

// ManagedPackages are the package names that facts must cover for a machine, apart from those in its spec.
func ManagedPackages() []string {
	names := slices.Clone(kubernetesPackages)
	for _, of := range runtimePackages {
		names = append(names, of...)
	}
	names = append(append(names, etcdPackages...), Helpers...)
	slices.Sort(names)
	return names
}

// packagesWanted are the names to look for in the repositories, sorted.
func packagesWanted(facts Facts, target v1alpha1.Target, spec v1alpha1.MachineSpec) []string {
	has := func(name string) bool { return isInstalled(facts, name) }
	var names []string
	if target.ControlPlane != "" || target.Kubelet != "" {
		names = append(names, packageKubeadm, packageCRITools, packageKubernetesCNI)
	}
	if target.Kubelet != "" {
		names = append(names, packageKubelet)
		if has(packageKubectl) {
			names = append(names, packageKubectl)
		}
	}
	if r := target.ContainerRuntime; r != nil && r.Version != "" {
		names = append(names, installedOf(facts, runtimePackages[r.Name])...)
		names = append(names, packageRunc)
	}
	if target.Etcd != "" {
		names = append(names, installedOf(facts, etcdPackages)...)
	}
	names = append(names, osNames(target, spec)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// osNames are the packages of spec.os that a target brings to the host.
func osNames(target v1alpha1.Target, spec v1alpha1.MachineSpec) []string {
	if !target.OS || spec.OS == nil {
		return nil
	}
	var names []string
	for _, p := range spec.OS.Packages {
		if p.State != v1alpha1.PackageAbsent {
			names = append(names, p.Name)
		}
	}
	return names
}

// installedOf are those of some packages that are installed; all of them when none is, for the message to name.
func installedOf(facts Facts, names []string) []string {
	var out []string
	for _, name := range names {
		if isInstalled(facts, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return names
	}
	return out
}

func isInstalled(facts Facts, name string) bool {
	return slices.ContainsFunc(facts.Packages.Installed, func(p InstalledPackage) bool { return p.Name == name && p.installed() })
}

// installed says that the package is wholly there: one that is half-configured is not.
func (p InstalledPackage) installed() bool {
	return p.Version != "" && (p.State == "" || p.State == "installed")
}
