package v1alpha1

// KubernetesVersion is a Kubernetes release such as v1.37.2. A vendor suffix
// (v1.29.0-eks-a5ec690, v1.29.6+k3s1) is kept and ignored in comparisons; a
// pre-release suffix (-rc.1, -beta.0, -alpha.3) is older than its release.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^v1[.](0|[1-9][0-9]{0,2})[.](0|[1-9][0-9]{0,2})([-+][0-9A-Za-z]([0-9A-Za-z.+_-]{0,40}[0-9A-Za-z])?)?$')",message="must be a Kubernetes version such as v1.37.2: a leading v, then major.minor.patch, optionally a vendor or pre-release suffix of letters, digits, dots and dashes"
type KubernetesVersion string

// ReleaseVersion is the upstream version of etcd or of a container runtime, with
// or without a leading v, such as 1.7.28 or v3.7.0.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]{0,3})[.](0|[1-9][0-9]{0,3})[.](0|[1-9][0-9]{0,3})([-+~][0-9A-Za-z]([0-9A-Za-z.+~_-]{0,40}[0-9A-Za-z])?)?$')",message="must be a release version such as 1.7.28: major.minor.patch, optionally a suffix of letters, digits, dots and dashes"
type ReleaseVersion string

// RuntimeName names a container runtime.
//
// +kubebuilder:validation:Enum=containerd;cri-o
type RuntimeName string

// The container runtimes Refit knows.
const (
	RuntimeContainerd RuntimeName = "containerd"
	RuntimeCRIO       RuntimeName = "cri-o"
)

// ContainerRuntime is a container runtime and its upstream version.
type ContainerRuntime struct {
	// Name of the runtime. Changing it on a running host is refused.
	Name RuntimeName `json:"name"`
	// Version is the upstream version, such as 1.7.28. Unset leaves the runtime alone.
	// +optional
	Version ReleaseVersion `json:"version,omitempty"`
}

// Versions are the wished versions of what runs on a host. An unset field is
// left alone: Refit never does more than it was asked.
type Versions struct {
	// Kubelet is the kubelet version wished for.
	// +optional
	Kubelet KubernetesVersion `json:"kubelet,omitempty"`
	// ControlPlane is the version of the API server, controller manager and scheduler. Only with role ControlPlane.
	// +optional
	ControlPlane KubernetesVersion `json:"controlPlane,omitempty"`
	// Etcd is the etcd version. Only with role Etcd; a stacked etcd moves with the control plane.
	// +optional
	Etcd ReleaseVersion `json:"etcd,omitempty"`
	// ContainerRuntime is the runtime and its version.
	// +optional
	ContainerRuntime *ContainerRuntime `json:"containerRuntime,omitempty"`
}
