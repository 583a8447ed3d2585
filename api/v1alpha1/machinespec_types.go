package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Role is what a host does in its cluster.
//
// +kubebuilder:validation:Enum=ControlPlane;Etcd;Worker
type Role string

// The roles of a host. A host may have several; an Etcd-only host has no Node.
const (
	RoleControlPlane Role = "ControlPlane"
	RoleEtcd         Role = "Etcd"
	RoleWorker       Role = "Worker"
)

// Availability is whether a host should serve.
//
// +kubebuilder:validation:Enum=InService;Standby;OutOfService
type Availability string

// The wishes for a host's availability.
const (
	AvailabilityInService    Availability = "InService"
	AvailabilityStandby      Availability = "Standby"
	AvailabilityOutOfService Availability = "OutOfService"
)

// MachineSpec is the final wish for one host. What a pool shares is written here
// from its MachineDeployment's template by server-side apply, without force.
//
// +kubebuilder:validation:XValidation:rule="!has(self.versions) || !has(self.versions.controlPlane) || 'ControlPlane' in self.roles",message="versions.controlPlane is only for machines with role ControlPlane: remove it, or add ControlPlane to roles"
// +kubebuilder:validation:XValidation:rule="!has(self.versions) || !has(self.versions.etcd) || 'Etcd' in self.roles",message="versions.etcd is only for machines with role Etcd (a stacked etcd moves with versions.controlPlane): remove it, or add Etcd to roles"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeadm) || !has(self.kubeadm.renewCertificatesBefore) || 'ControlPlane' in self.roles",message="kubeadm.renewCertificatesBefore is only for machines with role ControlPlane (the kubelet renews its own certificate): remove it, or add ControlPlane to roles"
type MachineSpec struct {
	// Roles of the host. ControlPlane and Etcd cannot be added or removed once the host has reported,
	// except that ControlPlane may be made to agree with what it reports.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Roles []Role `json:"roles"`

	MachineTemplateSpec `json:",inline"`

	// Availability says whether the host serves, stands by for a rollout, or is left out of every count. Unset: InService.
	// +optional
	Availability Availability `json:"availability,omitempty"`

	// Paused stops new grants for this machine; an accepted operation finishes.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MachineTemplateSpec is the part of a Machine's spec that a pool can share.
type MachineTemplateSpec struct {
	// Versions wished for.
	// +optional
	Versions *Versions `json:"versions,omitempty"`
	// OS packages, security updates and reboots.
	// +optional
	OS *OSSpec `json:"os,omitempty"`
	// PackageSources from which packages may come. Unset: the sources already configured on the host.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	PackageSources []PackageSource `json:"packageSources,omitempty"`
	// Kubelet settings.
	// +optional
	Kubelet *KubeletSpec `json:"kubelet,omitempty"`
	// Kubeadm settings.
	// +optional
	Kubeadm *KubeadmSpec `json:"kubeadm,omitempty"`
	// Node labels and taints. Only what is set here is Refit's.
	// +optional
	Node *NodeSpec `json:"node,omitempty"`
	// Drain says how pods leave the host before disruptive work.
	// +optional
	Drain *DrainSpec `json:"drain,omitempty"`
	// Hooks run on the host around the work.
	// +optional
	Hooks *HooksSpec `json:"hooks,omitempty"`
	// DriftPolicy says what happens when a host no longer runs its spec. Unset: Repair.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`
}

// DriftPolicy says what is done about drift.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

// Drift is repaired under a grant, or only reported.
const (
	DriftRepair DriftPolicy = "Repair"
	DriftReport DriftPolicy = "Report"
)

// OSSpec is what is wished of the operating system.
type OSSpec struct {
	// Packages to have at a version, or to be absent. Others are left alone.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Packages []Package `json:"packages,omitempty"`
	// SecurityUpdates applies the distribution's security updates under the same grants: on apt hosts what comes from a suite
	// that ends with -security or is labelled Debian-Security, on dnf hosts what a security advisory names. Packages that
	// have a field of their own, or an entry in packages, and packages on hold are left alone. Unset: None.
	// +optional
	SecurityUpdates SecurityUpdates `json:"securityUpdates,omitempty"`
	// Reboot says whether the host may be rebooted when a package asks for it. Unset: IfRequired.
	// +optional
	Reboot RebootPolicy `json:"reboot,omitempty"`
}

// SecurityUpdates is the lane of updates that are not named one by one.
//
// +kubebuilder:validation:Enum=None;Apply
type SecurityUpdates string

// Security updates are left alone or applied.
const (
	SecurityUpdatesNone  SecurityUpdates = "None"
	SecurityUpdatesApply SecurityUpdates = "Apply"
)

// RebootPolicy says whether the host may be rebooted.
//
// +kubebuilder:validation:Enum=Never;IfRequired
type RebootPolicy string

// A host is never rebooted, or when the host itself says that it is required.
const (
	RebootNever      RebootPolicy = "Never"
	RebootIfRequired RebootPolicy = "IfRequired"
)

// PackageState says whether a package is wished for.
//
// +kubebuilder:validation:Enum=Present;Absent
type PackageState string

// A package is to be present, or absent.
const (
	PackagePresent PackageState = "Present"
	PackageAbsent  PackageState = "Absent"
)

// Package is one operating-system package.
//
// +kubebuilder:validation:XValidation:rule="!has(self.state) || self.state != 'Absent' || !has(self.version)",message="a package with state Absent has no version: remove one of the two"
type Package struct {
	// Name as the host's package manager knows it.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9+])?$')",message="must be a plain package name: letters, digits, dots, dashes, plus and underscore, not starting or ending with a dash"
	Name string `json:"name"`
	// Version is the full package version (epoch, upstream, revision). Unset: any version satisfies.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9.+~:^_-]*[A-Za-z0-9~])?$')",message="must be a package version such as 3.0.15-1~deb12u1: no spaces, no quotes, not ending with + or -"
	Version string `json:"version,omitempty"`
	// State wished for. Unset: Present.
	// +optional
	State PackageState `json:"state,omitempty"`
}

// PackageSource is a package repository. Its key must already be on the host.
type PackageSource struct {
	// Name of the source; also the name of its file on the host. "kubernetes" is the source of kubelet and kubeadm,
	// and "cri-o" that of CRI-O.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must be lower-case letters, digits and dashes"
	Name string `json:"name"`
	// URI of the repository; {minor} stands for the minor of the hop, such as v1.37; for "cri-o" it is CRI-O's own.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~:+%{}/-]*)?$')",message="must be an http or https URL without user, query or spaces; {minor} stands for the minor of the hop"
	URI string `json:"uri"`
	// Suites of the repository; "/" for a flat one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Suites []SourceWord `json:"suites,omitempty"`
	// Components of the suites; none for a flat repository.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Components []SourceWord `json:"components,omitempty"`
	// SignedBy names the keyring on the host that signs the index, without path and ending. Keys never travel in a spec.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",message="must be the bare name of a keyring on the host, such as refit-kubernetes"
	SignedBy string `json:"signedBy"`
}

// SourceWord is a suite or component of a package source.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9][A-Za-z0-9._/-]*|/)$')",message="must be a suite or component name such as bookworm, or / for a flat repository"
type SourceWord string

// KubeletSpec is the kubelet's configuration beyond what kubeadm writes.
type KubeletSpec struct {
	// Configuration holds fields of kubelet.config.k8s.io/v1beta1 KubeletConfiguration, written as a drop-in file that wins over
	// the kubelet's own configuration. Maps are merged key by key, lists are replaced. It needs kubelet v1.28 or newer.
	// Fields that the hop's kubelet does not have are refused, and so are staticPodPath, staticPodURL, staticPodURLHeader,
	// authentication, authorization, containerRuntimeEndpoint, imageServiceEndpoint, volumePluginDir, a readOnlyPort other than 0, those that begin
	// with tls (unless the policy of the host allows them), and a healthzPort of 0.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Configuration *runtime.RawExtension `json:"configuration,omitempty"`
}

// KubeadmSpec is passed to kubeadm.
type KubeadmSpec struct {
	// IgnorePreflightErrors are kubeadm preflight ids to accept, one by one; "all" is refused.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	IgnorePreflightErrors []PreflightID `json:"ignorePreflightErrors,omitempty"`
	// SkipPhases are phases of "kubeadm upgrade" to leave out. Only the addons can be: kubeadm rolls them over the whole
	// cluster with the last control-plane machine of a hop, outside every budget. What is left out is yours to upgrade.
	// kubeadm knows the phases since v1.32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	SkipPhases []KubeadmPhase `json:"skipPhases,omitempty"`
	// RenewCertificatesBefore is how long before its end a certificate that kubeadm manages on a control-plane
	// machine is renewed, with all others of kubeadm, and the static pods are restarted one after the other.
	// A control-plane upgrade renews them too. Unset: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) > duration('0s') && duration(self) <= duration('4320h')",message="must be longer than 0s and at most 4320h (180 days; kubeadm issues for a year), such as 720h"
	RenewCertificatesBefore *metav1.Duration `json:"renewCertificatesBefore,omitempty"`
}

// PreflightID is the id of one kubeadm preflight check, such as CreateJob.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9-]*$') && self.lowerAscii() != 'all'",message="must be the id of one kubeadm preflight check, such as CreateJob; all is refused: name each check"
type PreflightID string

// KubeadmPhase is a phase of "kubeadm upgrade" that can be left out.
//
// +kubebuilder:validation:Enum=addon/coredns;addon/kube-proxy
type KubeadmPhase string

// The phases that can be left out.
const (
	KubeadmPhaseCoreDNS   KubeadmPhase = "addon/coredns"
	KubeadmPhaseKubeProxy KubeadmPhase = "addon/kube-proxy"
)

// NodeSpec is what is wished of the Node object.
type NodeSpec struct {
	// Labels to set on the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// Taints to set on the Node.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	Taints []Taint `json:"taints,omitempty"`
}

// Taint is a Node taint.
type Taint struct {
	// Key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`
	// Value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`
	// Effect of the taint. NoExecute makes setting it a drained change.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// DrainSpec says how pods leave a host. The defaults are in pkg/upgrade, never in the schema.
type DrainSpec struct {
	// Timeout of the whole drain. Unset: 30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="must be a duration longer than 0s, such as 30m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be a duration longer than 0s, such as 30m or 1h30m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// OnTimeout says what happens when the timeout is over. Unset: Fail (the node is given back).
	// +optional
	// +kubebuilder:validation:Enum=Fail;Proceed;Delete
	OnTimeout string `json:"onTimeout,omitempty"`
	// EmptyDir says whether pods with emptyDir volumes may be evicted. Unset: Evict.
	// +optional
	// +kubebuilder:validation:Enum=Evict;Fail
	EmptyDir string `json:"emptyDir,omitempty"`
	// UnmanagedPods says what happens to pods without a controller. Unset: Fail.
	// +optional
	// +kubebuilder:validation:Enum=Fail;Evict
	UnmanagedPods string `json:"unmanagedPods,omitempty"`
	// SkipWaitForDeleteTimeout stops waiting for pods whose deletion is older than this. Unset or 0: wait.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$|^0$')",message="must be a duration such as 30s, 5m or 1h30m"
	SkipWaitForDeleteTimeout *metav1.Duration `json:"skipWaitForDeleteTimeout,omitempty"`
	// SingleNode says what happens where no other schedulable node exists. Unset: Refuse.
	// +optional
	// +kubebuilder:validation:Enum=Refuse;InPlace
	SingleNode string `json:"singleNode,omitempty"`
	// LoadBalancerDelay is how long external load balancers have to leave the Node out before its first pod is evicted. Unset or 0: none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$|^0$')",message="must be a duration such as 30s, 5m or 1h30m"
	LoadBalancerDelay *metav1.Duration `json:"loadBalancerDelay,omitempty"`
	// VolumeDetachTimeout bounds the wait, before a reboot, for the volumes of the pods that have left. Unset: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="must be a duration longer than 0s, such as 30m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be a duration longer than 0s, such as 30m or 1h30m"
	VolumeDetachTimeout *metav1.Duration `json:"volumeDetachTimeout,omitempty"`
	// OnVolumesAttached says what happens when volumes are still attached after that. Unset: Fail (the node is given back).
	// +optional
	// +kubebuilder:validation:Enum=Fail;Proceed
	OnVolumesAttached string `json:"onVolumesAttached,omitempty"`
	// SkipForMinor leaves out the drain that upstream requires for a kubelet minor. Unsafe, and recorded in status.
	// +optional
	SkipForMinor bool `json:"skipForMinor,omitempty"`
}

// HooksSpec names root-owned files in /etc/refit/hooks.d on the host.
type HooksSpec struct {
	// PreApply hooks run after the drain, before the first change.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	PreApply []HookName `json:"preApply,omitempty"`
	// PostApply hooks run after local verification.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	PostApply []HookName `json:"postApply,omitempty"`
}

// HookName is the bare file name of a hook.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$')",message="must be the bare name of a file in /etc/refit/hooks.d: letters, digits, dashes, underscores"
type HookName string
