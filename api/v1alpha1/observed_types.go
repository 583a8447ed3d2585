package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// HostIdentity tells a machine from another one with the same name.
type HostIdentity struct {
	// MachineID is /etc/machine-id.
	// +optional
	MachineID string `json:"machineID,omitempty"`
	// BootID is the kernel's id of this boot; a new one proves a reboot.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// SystemUUID is the firmware's id, empty where there is none.
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`
}

// ObservedVersions are the versions that run on the host. The raw text is kept; "Unknown" is a value that blocks a plan.
type ObservedVersions struct {
	// Kubelet is the version of the running kubelet process.
	// +optional
	Kubelet string `json:"kubelet,omitempty"`
	// Kubeadm is the version of the kubeadm program.
	// +optional
	Kubeadm string `json:"kubeadm,omitempty"`
	// KubeProxy is the version of kube-proxy on this host.
	// +optional
	KubeProxy string `json:"kubeProxy,omitempty"`
	// ControlPlane is what this host's own control plane runs.
	// +optional
	ControlPlane *ObservedControlPlane `json:"controlPlane,omitempty"`
	// Etcd is the version of this host's etcd member.
	// +optional
	Etcd string `json:"etcd,omitempty"`
	// ContainerRuntime as the running daemon answers.
	// +optional
	ContainerRuntime *ObservedRuntime `json:"containerRuntime,omitempty"`
}

// ObservedControlPlane is read from the components of this very host.
type ObservedControlPlane struct {
	// APIServer is what this host's API server answers at /version.
	// +optional
	APIServer string `json:"apiServer,omitempty"`
	// ControllerManager is the version of the running controller manager.
	// +optional
	ControllerManager string `json:"controllerManager,omitempty"`
	// Scheduler is the version of the running scheduler.
	// +optional
	Scheduler string `json:"scheduler,omitempty"`
}

// ObservedRuntime is the container runtime that answers on its socket.
type ObservedRuntime struct {
	// Name of the runtime.
	// +optional
	Name string `json:"name,omitempty"`
	// Version as the daemon reports it.
	// +optional
	Version string `json:"version,omitempty"`
	// Text is name://version, as in Node status.
	// +optional
	Text string `json:"text,omitempty"`
	// Installed is the version on disk, told only where the runtime is stopped: what a repair starts from.
	// +optional
	Installed string `json:"installed,omitempty"`
}

// ObservedOS is what the host says of its operating system.
type ObservedOS struct {
	// ID of os-release, such as debian.
	// +optional
	ID string `json:"id,omitempty"`
	// VersionID of os-release, such as 12.
	// +optional
	VersionID string `json:"versionID,omitempty"`
	// PrettyName of os-release.
	// +optional
	PrettyName string `json:"prettyName,omitempty"`
	// Kernel release that runs.
	// +optional
	Kernel string `json:"kernel,omitempty"`
	// Architecture in Go's spelling, such as amd64.
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// Packages named in spec only, as installed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Packages []ObservedPackage `json:"packages,omitempty"`
	// Unmet says, for people, what of what Refit left on the host is no longer so: package sources of spec.packageSources
	// that it wrote, and holds that it set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Unmet []string `json:"unmet,omitempty"`
	// RebootRequired is what the host says.
	// +optional
	RebootRequired bool `json:"rebootRequired,omitempty"`
	// RebootStays says that the host still asks for a reboot that it has had; it gets none for that again.
	// +optional
	RebootStays string `json:"rebootStays,omitempty"`
}

// ObservedPackage is an installed package.
type ObservedPackage struct {
	// Name of the package.
	Name string `json:"name"`
	// Version installed; empty when absent.
	// +optional
	Version string `json:"version,omitempty"`
	// Expendable says that the owner of the host allows its removal by name, although hosts are held to need it.
	// +optional
	Expendable bool `json:"expendable,omitempty"`
}

// ObservedKubelet is the kubelet's configuration, as far as spec.kubelet.configuration is about it.
type ObservedKubelet struct {
	// Configuration is what is effective of the fields that spec.kubelet.configuration names, files and flags taken together.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Configuration *runtime.RawExtension `json:"configuration,omitempty"`
	// DropIn is the digest of what Refit's drop-in file says; empty where there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	DropIn string `json:"dropIn,omitempty"`
	// UnitDropIn says how Refit's drop-in of the kubelet's unit is: empty where there is none, AsNeeded,
	// Changed by somebody, or NotNeeded since the unit names the directory of drop-in files without it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	UnitDropIn string `json:"unitDropIn,omitempty"`
	// RestartPending says that the kubelet has not read Refit's drop-ins since they changed.
	// +optional
	RestartPending bool `json:"restartPending,omitempty"`
}
