package upgrade

import "github.com/refit-dev/refit/api/v1alpha1"

// Identity is who the host says it is, as its Machine reports it.
func (f *Facts) Identity() *v1alpha1.HostIdentity {
	return &v1alpha1.HostIdentity{MachineID: f.Host.MachineID, BootID: f.Host.BootID, SystemUUID: f.Host.SystemUUID}
}

// LastKubelet is the kubelet that is installed where none runs; "" where one does.
func (f *Facts) LastKubelet() string {
	if f.Kubelet == nil || f.Kubelet.Active || f.Kubelet.Running != "" {
		return ""
	}
	return f.Kubelet.Installed
}

// Versions are the versions that run, as the Machine reports them.
func (f *Facts) Versions() *v1alpha1.ObservedVersions {
	v := &v1alpha1.ObservedVersions{KubeProxy: f.KubeProxy}
	if f.Kubelet != nil {
		v.Kubelet = orUnknown(f.Kubelet.Running)
	}
	if f.Kubeadm != nil {
		v.Kubeadm = orUnknown(f.Kubeadm.Installed)
	}
	v.ControlPlane = f.observedControlPlane()
	v.Etcd = f.etcdVersion()
	if r := f.Runtime; r != nil {
		v.ContainerRuntime = &v1alpha1.ObservedRuntime{Name: r.Name, Version: orUnknown(r.Running)}
		if r.Running != "" {
			v.ContainerRuntime.Text = r.Name + "://" + r.Running
		} else if r.Stopped {
			v.ContainerRuntime.Installed = r.Installed
		}
	}
	return v
}

// orUnknown turns what could not be read into the value that blocks a plan.
func orUnknown(version string) string {
	if version == "" {
		return v1alpha1.Unknown
	}
	return version
}

// ObservedOS is the operating system as the Machine reports it, with the packages that spec names.
func (f *Facts) ObservedOS(wanted *v1alpha1.OSSpec) *v1alpha1.ObservedOS {
	installed := map[string]string{}
	for _, p := range f.Packages.Installed {
		installed[p.Name] = p.Version
	}
	os := &v1alpha1.ObservedOS{
		ID: f.OS.ID, VersionID: f.OS.VersionID, PrettyName: f.OS.PrettyName,
		Kernel: f.OS.Kernel, Architecture: f.OS.Architecture, RebootRequired: f.Reboot.Required,
	}
	if wanted == nil {
		return os
	}
	for _, p := range wanted.Packages {
		expendable := p.State == v1alpha1.PackageAbsent && isProtected(p.Name, f.OS.Kernel) && f.Policy.rules().Removes(p.Name)
		os.Packages = append(os.Packages, v1alpha1.ObservedPackage{Name: p.Name, Version: installed[p.Name], Expendable: expendable})
	}
	return os
}
