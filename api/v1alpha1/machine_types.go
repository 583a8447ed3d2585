package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Machine is one host that is kept at declared versions in place. Its name is the
// name of its Node (an Etcd-only host has none).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mach,categories=refit
// +kubebuilder:printcolumn:name="Roles",type=string,JSONPath=`.spec.roles`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Kubelet",type=string,JSONPath=`.status.versions.kubelet`
// +kubebuilder:printcolumn:name="Control-Plane",type=string,JSONPath=`.status.versions.controlPlane.apiServer`
// +kubebuilder:printcolumn:name="Etcd",type=string,JSONPath=`.status.versions.etcd`
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.status.versions.containerRuntime.text`
// +kubebuilder:printcolumn:name="OS",type=string,JSONPath=`.status.os.prettyName`
// +kubebuilder:printcolumn:name="UpToDate",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Kernel",type=string,JSONPath=`.status.os.kernel`,priority=1
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.versions.kubelet`,priority=1
// +kubebuilder:printcolumn:name="Target-Runtime",type=string,JSONPath=`.spec.versions.containerRuntime.version`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.host) || ((('ControlPlane' in self.spec.roles) == ('ControlPlane' in oldSelf.spec.roles) || ('ControlPlane' in self.spec.roles) == (has(oldSelf.status.versions) && has(oldSelf.status.versions.controlPlane))) && ('Etcd' in self.spec.roles) == ('Etcd' in oldSelf.spec.roles))",message="spec.roles: ControlPlane and Etcd cannot be added or removed once the host has reported, unless ControlPlane is what the host turned out to be: a host does not change its role in place"
type Machine struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the final wish for the host.
	Spec MachineSpec `json:"spec"`
	// Status is what really runs, and what is being done.
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// MachineStatus has two writers. The agent owns host, versions, os, kubelet, plan,
// accepted, lastOperation, hostFailure, passedMinors, requestedAPIs, etcd, etcdSnapshot, certificateEndTime, observedGeneration, observedEpoch and the
// conditions of AgentConditions. The coordinator owns the rest.
type MachineStatus struct {
	// Host identifies the machine behind the name. Written by the agent.
	// +optional
	Host *HostIdentity `json:"host,omitempty"`
	// Versions are the versions that run, not those on disk. Written by the agent.
	// +optional
	Versions *ObservedVersions `json:"versions,omitempty"`
	// OS is what the host says of its operating system. Written by the agent.
	// +optional
	OS *ObservedOS `json:"os,omitempty"`
	// Kubelet is how the kubelet is configured, as far as Refit has a say in it. Written by the agent.
	// +optional
	Kubelet *ObservedKubelet `json:"kubelet,omitempty"`
	// Plan is the frozen plan for the assignment. Written by the agent.
	// +optional
	Plan *PlanStatus `json:"plan,omitempty"`
	// Accepted names the grant that the agent has accepted. Written by the agent before it starts work.
	// +optional
	Accepted *Acceptance `json:"accepted,omitempty"`
	// LastOperation says what was tried and how it went. Written by the agent.
	// +optional
	LastOperation *Operation `json:"lastOperation,omitempty"`
	// HostFailure says why the host cannot go on. Written by the agent.
	// +optional
	HostFailure *Failure `json:"hostFailure,omitempty"`
	// PassedMinors are the minors that the control plane only passes through on its way to spec,
	// with the releases of them that this host can get. Written by the agent.
	// +optional
	// +listType=map
	// +listMapKey=minor
	// +kubebuilder:validation:MaxItems=20
	PassedMinors []PassedMinor `json:"passedMinors,omitempty"`
	// RequestedAPIs are the APIs that go away and that clients have asked this host's API server for since it
	// started. No control plane of the cluster is the first to go to a minor without one of them. Written by the agent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RequestedAPIs []RequestedAPI `json:"requestedAPIs,omitempty"`
	// Etcd is how the members of etcd are that this host's control plane stores in. Written by the agent.
	// +optional
	Etcd *ObservedEtcd `json:"etcd,omitempty"`
	// EtcdSnapshot is the newest verified snapshot of etcd that Refit took on this host. Written by the agent.
	// +optional
	EtcdSnapshot *EtcdSnapshot `json:"etcdSnapshot,omitempty"`
	// CertificateEndTime is when the first certificate ends that the host's programs read. Written by the agent.
	// +optional
	CertificateEndTime *metav1.Time `json:"certificateEndTime,omitempty"`
	// ObservedGeneration is the spec generation that the plan is for. Written by the agent.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ObservedEpoch is the highest coordinator epoch the agent has seen. Written by the agent.
	// +optional
	ObservedEpoch int64 `json:"observedEpoch,omitempty"`

	// NodeRef is the Node of this machine. Written by the coordinator.
	// +optional
	NodeRef *NodeRef `json:"nodeRef,omitempty"`
	// Assignment is the next hop. It disturbs nothing. Written by the coordinator.
	// +optional
	Assignment *Assignment `json:"assignment,omitempty"`
	// Grant is the permission to change the host. Written by the coordinator.
	// +optional
	Grant *Grant `json:"grant,omitempty"`
	// Role is whether the machine serves or stands by now. Written by the coordinator.
	// +optional
	// +kubebuilder:validation:Enum=Serving;Standby
	Role string `json:"role,omitempty"`
	// Phase is for people; programs read conditions. Written by the coordinator.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// RolloutFailure says why the rollout failed on this machine. Written by the coordinator.
	// +optional
	RolloutFailure *RolloutFailure `json:"rolloutFailure,omitempty"`
	// ObservedRetry is the value of annotation refit.dev/retry (of the machine and of its deployment) that was acted on. Written by the coordinator.
	// +optional
	ObservedRetry string `json:"observedRetry,omitempty"`
	// History holds the last five operations. Written by the coordinator.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	History []HistoryEntry `json:"history,omitempty"`

	// Conditions for programs; each type has one writer.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Disruption is what a plan does to the pods of a host.
//
// +kubebuilder:validation:Enum=None;Restart;Drain;Reboot
type Disruption string

// Disruptions, from least to most.
const (
	DisruptionNone    Disruption = "None"
	DisruptionRestart Disruption = "Restart"
	DisruptionDrain   Disruption = "Drain"
	DisruptionReboot  Disruption = "Reboot"
)

// PlanStatus is the frozen plan.
type PlanStatus struct {
	// AssignmentID of the assignment that the plan is for.
	AssignmentID string `json:"assignmentID"`
	// Hash covers exactly what will be done: steps, parameters, artefact digests.
	Hash string `json:"hash"`
	// Disruption of the whole plan.
	Disruption Disruption `json:"disruption"`
	// Steps in order, for people.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Steps []string `json:"steps,omitempty"`
	// Findings of preflight.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is one result of preflight.
type Finding struct {
	// Severity: an Error blocks the plan.
	// +kubebuilder:validation:Enum=Info;Warning;Error
	Severity string `json:"severity"`
	// Reason for programs.
	Reason string `json:"reason"`
	// Message for people: what, where and what to do.
	Message string `json:"message"`
}

// Acceptance is the agent's word that it starts the granted work.
type Acceptance struct {
	// GrantID of the accepted grant.
	GrantID string `json:"grantID"`
}

// OperationType is the kind of work of an assignment.
//
// +kubebuilder:validation:Enum=Upgrade;Reconfigure;Reboot;Rollback;Repair;RenewCertificates
type OperationType string

// The operation types.
const (
	OperationUpgrade     OperationType = "Upgrade"
	OperationReconfigure OperationType = "Reconfigure"
	OperationReboot      OperationType = "Reboot"
	OperationRollback    OperationType = "Rollback"
	OperationRepair      OperationType = "Repair"
	// OperationRenewCertificates has nothing else in it: a renewal may also ride on an upgrade.
	OperationRenewCertificates OperationType = "RenewCertificates"
)

// OperationState is how an operation goes.
//
// +kubebuilder:validation:Enum=Processing;Successful;Failed
type OperationState string

// The states of an operation.
const (
	OperationProcessing OperationState = "Processing"
	OperationSuccessful OperationState = "Successful"
	OperationFailed     OperationState = "Failed"
)

// Operation is what was tried on the host and how it went.
type Operation struct {
	// ID is the id of the grant it ran under.
	ID string `json:"id"`
	// Type of the work.
	Type OperationType `json:"type"`
	// State of the work.
	State OperationState `json:"state"`
	// Step that runs, is next, or failed; the last when all are done.
	// +optional
	Step string `json:"step,omitempty"`
	// StepsDone counts the steps before it, all of them when all are done.
	StepsDone int32 `json:"stepsDone"`
	// StepsTotal counts all steps.
	StepsTotal int32 `json:"stepsTotal"`
	// StartTime of the operation.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// LastUpdateTime of this record, by the host's clock.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// Description for people.
	// +optional
	Description string `json:"description,omitempty"`
	// Reason for programs when State is Failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// RolledBack says that the host was returned to what it ran before.
	// +optional
	RolledBack bool `json:"rolledBack,omitempty"`
	// Phases are the durations of finished host-side phases (Stage, Apply, Restart, Verify).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Phases []PhaseDuration `json:"phases,omitempty"`
}

// PhaseDuration is how long a phase took.
type PhaseDuration struct {
	// Name of the phase.
	Name string `json:"name"`
	// Duration of the phase.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms|us|µs|ns))+$')",message="must be a duration such as 3.2s or 1m2s"
	Duration metav1.Duration `json:"duration"`
}

// Failure is a reason for programs and a message for people.
type Failure struct {
	// Reason in CamelCase.
	Reason string `json:"reason"`
	// Message says what, where and what to do.
	Message string `json:"message"`
	// Terminal failures wait for a new spec or an explicit retry; others are retried with backoff.
	// +optional
	Terminal bool `json:"terminal,omitempty"`
	// Attempts so far.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// NextRetryTime of a passing fault.
	// +optional
	NextRetryTime *metav1.Time `json:"nextRetryTime,omitempty"`
}

// RolloutFailure is a failure that the coordinator has classified.
type RolloutFailure struct {
	// Class is one of Unreachable, DrainBlocked, SourceUnavailable, ApplyFailed, UnhealthyAfter, RolledBack.
	Class   string `json:"class"`
	Failure `json:",inline"`
	// FirstTime is when the first of the attempts failed.
	// +optional
	FirstTime *metav1.Time `json:"firstTime,omitempty"`
}

// NodeRef is the Node of a machine.
type NodeRef struct {
	// Name of the Node.
	Name string `json:"name"`
	// UID of the Node: the same name with another UID is another machine.
	UID string `json:"uid"`
}

// KubeadmRole says which kubeadm command a control-plane hop runs.
//
// +kubebuilder:validation:Enum=First;Other
type KubeadmRole string

// The first machine of a hop runs kubeadm upgrade apply, the others kubeadm upgrade node.
const (
	KubeadmFirst KubeadmRole = "First"
	KubeadmOther KubeadmRole = "Other"
)

// Assignment names the next hop of one machine. It disturbs nothing.
type Assignment struct {
	// ID of the assignment.
	ID string `json:"id"`
	// Generation of the spec that it was made from.
	Generation int64 `json:"generation"`
	// Type of the work.
	Type OperationType `json:"type"`
	// Target of this hop.
	Target Target `json:"target"`
	// KubeadmRole of the machine in this hop; only when the hop has kubeadm work.
	// +optional
	KubeadmRole KubeadmRole `json:"kubeadmRole,omitempty"`
	// Skew is what the coordinator knows of the API servers. Without it no kubelet is moved.
	// +optional
	Skew *Skew `json:"skew,omitempty"`
	// Epoch of the coordinator that made it.
	Epoch int64 `json:"epoch"`
}

// Target is what a hop leads to. An unset version is left alone in this hop.
type Target struct {
	Versions `json:",inline"`
	// OS says that the packages and settings of spec.os, and spec.kubelet.configuration, ride on this hop.
	// +optional
	OS bool `json:"os,omitempty"`
	// Certificates says that the certificates that kubeadm manages are renewed in this hop, where they are due.
	// +optional
	Certificates bool `json:"certificates,omitempty"`
}

// Skew is the range of live API-server versions that the kubelet meets in this hop: as they are, with the
// machine's own API server at the version of the hop when the hop moves it.
type Skew struct {
	// MinAPIServer is the oldest live API server: no kubelet may be newer.
	// +optional
	MinAPIServer string `json:"minAPIServer,omitempty"`
	// MaxAPIServer is the newest live API server.
	// +optional
	MaxAPIServer string `json:"maxAPIServer,omitempty"`
}

// Grant is the permission to carry out one frozen plan once. A void grant takes an unaccepted one back.
type Grant struct {
	// ID runs at most once per host.
	ID string `json:"id"`
	// AssignmentID it belongs to.
	AssignmentID string `json:"assignmentID"`
	// PlanHash of the plan that is granted; no other may run.
	PlanHash string `json:"planHash"`
	// Epoch of the coordinator that gave it.
	Epoch int64 `json:"epoch"`
	// Void says that the grant permits nothing; it replaced one that was not accepted.
	// +optional
	Void bool `json:"void,omitempty"`
}

// Phase is for people and derived from conditions in one function.
//
// +kubebuilder:validation:Enum=Pending;Ready;Outdated;Staging;Waiting;Draining;Applying;Rebooting;Verifying;Soaking;RollingBack;Failed;Unknown;Paused;Standby
type Phase string

// The phases.
const (
	PhasePending     Phase = "Pending"
	PhaseReady       Phase = "Ready"
	PhaseOutdated    Phase = "Outdated"
	PhaseStaging     Phase = "Staging"
	PhaseWaiting     Phase = "Waiting"
	PhaseDraining    Phase = "Draining"
	PhaseApplying    Phase = "Applying"
	PhaseRebooting   Phase = "Rebooting"
	PhaseVerifying   Phase = "Verifying"
	PhaseSoaking     Phase = "Soaking"
	PhaseRollingBack Phase = "RollingBack"
	PhaseFailed      Phase = "Failed"
	PhaseUnknown     Phase = "Unknown"
	PhasePaused      Phase = "Paused"
	PhaseStandby     Phase = "Standby"
)

// HistoryEntry is one ended operation.
type HistoryEntry struct {
	// ID of the grant.
	ID string `json:"id"`
	// Type of the work.
	Type OperationType `json:"type"`
	// State it ended in.
	State OperationState `json:"state"`
	// Reason for programs when State is Failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// From are the versions that ran before it.
	// +optional
	From *Versions `json:"from,omitempty"`
	// Target it was for.
	// +optional
	Target *Target `json:"target,omitempty"`
	// StartTime is when the slot was reserved.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when the slot was released.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// Phases with their durations: Wait, Drain, Apply, Restart, Ready.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Phases []PhaseDuration `json:"phases,omitempty"`
}

// PassedMinor is a minor that a control plane passes through: kubeadm takes one at a time.
type PassedMinor struct {
	// Minor, such as v1.36.
	Minor string `json:"minor"`
	// Releases of the minor that the host's package sources offer, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Releases []KubernetesVersion `json:"releases,omitempty"`
	// Message says why no release is known.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// RequestedAPI is an API that goes away and that somebody still asks for.
type RequestedAPI struct {
	// Name of the API, such as flowschemas.v1beta3.flowcontrol.apiserver.k8s.io.
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// RemovedIn is the first minor without it, such as v1.32.
	// +kubebuilder:validation:MaxLength=32
	RemovedIn string `json:"removedIn"`
}
