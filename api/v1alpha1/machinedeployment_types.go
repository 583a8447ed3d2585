package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDeployment is a pool of machines that are rolled together.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=machd,categories=refit
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="UpToDate",type=integer,JSONPath=`.status.upToDate`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="In-Flight",type=integer,JSONPath=`.status.inFlight`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Kubelet",type=string,JSONPath=`.spec.template.spec.versions.kubelet`
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.template.spec.versions.containerRuntime.version`
// +kubebuilder:printcolumn:name="Paused",type=string,JSONPath=`.status.paused`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`,priority=1
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the wish for the pool.
	Spec MachineDeploymentSpec `json:"spec"`
	// Status of the rollout.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// MachineDeploymentList is a list of MachineDeployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec is the wish for a pool.
type MachineDeploymentSpec struct {
	// Selector of the pool's Machines in this namespace. Two MachineDeployments that match one Machine both refuse.
	Selector metav1.LabelSelector `json:"selector"`
	// Template holds what the pool shares.
	Template MachineTemplate `json:"template"`
	// Replicas is how many machines serve; the others stand by. Unset: all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
	// Paused stops new grants; accepted operations finish.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ProgressDeadline after which a rollout without progress is reported with condition Progressing False, reason ProgressDeadlineExceeded; nothing else follows. Unset: 1h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="must be a duration longer than 0s, such as 30m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be a duration longer than 0s, such as 30m or 1h30m"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`
	// RevisionHistoryLimit is how many old revisions are kept for undo. Unset: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Strategy of the rollout.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`
}

// MachineTemplate is written into each Machine of a pool.
type MachineTemplate struct {
	// Spec fields that the pool shares.
	// +optional
	Spec MachineTemplateSpec `json:"spec,omitempty"`
}

// Types of a rollout.
const (
	// StrategyRollingUpdate goes on by itself.
	StrategyRollingUpdate = "RollingUpdate"
	// StrategyManual waits for the operator to name each machine.
	StrategyManual = "Manual"
)

// RolloutStrategy says who is next.
type RolloutStrategy struct {
	// Type: RollingUpdate, or Manual where the operator names the next machine with annotation refit.dev/next. Unset: RollingUpdate.
	// +optional
	// +kubebuilder:validation:Enum=RollingUpdate;Manual
	Type string `json:"type,omitempty"`
	// RollingUpdate settings.
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate bounds a rollout.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || (type(self.maxUnavailable) == int ? self.maxUnavailable > 0 : true) || (has(self.maxSurge) && (type(self.maxSurge) == int ? self.maxSurge > 0 : self.maxSurge != '0%'))",message="maxUnavailable 0 needs a maxSurge above 0 and a standby machine: otherwise no machine could ever be upgraded"
type RollingUpdate struct {
	// MaxUnavailable machines: a count, or a percentage of replicas rounded down, at least 1. The integer 0 is legal and needs a usable standby. Unset: 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a count of 0 or more, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many standby machines are put to work for the rollout. Unset: 0.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a count of 0 or more, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// MaxInFlight bounds changes that need no drain. Unset: 10%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^(100|[1-9][0-9]?)%$')",message="must be a count of 1 or more, or a percentage from 1% to 100%"
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`
	// CordonedMachines says what is done with machines whose Node somebody else has cordoned. Skip leaves them as they are,
	// Include upgrades them and leaves the cordon in place. Either way they count as unavailable. Unset: Skip.
	// +optional
	// +kubebuilder:validation:Enum=Skip;Include
	CordonedMachines string `json:"cordonedMachines,omitempty"`
	// TopologyKey is a Node label; one domain is finished before the next: each of its machines is done, failed, paused, out of service or cordoned by someone else.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey,omitempty"`
	// Canary machines go first.
	// +optional
	Canary *Canary `json:"canary,omitempty"`
	// Soak is how long a machine must stay healthy with pods on it. Unset: 0.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$|^0$')",message="must be a duration such as 30s, 5m or 1h30m"
	Soak *metav1.Duration `json:"soak,omitempty"`
	// Checks that must pass between machines.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Checks []Check `json:"checks,omitempty"`
	// FailureThreshold of machines at which the rollout pauses itself: a count, or a percentage of replicas rounded down, at least 1. Unset: 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1000000 : self.matches('^(100|[1-9][0-9]?)%$')",message="must be a count of 1 or more, or a percentage from 1% to 100%"
	FailureThreshold *intstr.IntOrString `json:"failureThreshold,omitempty"`
	// Windows in which grants may be given, and those that would by measurement not end in them are not. None: always.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []Window `json:"windows,omitempty"`
}

// Canary machines go first, alone.
type Canary struct {
	// Count of canaries.
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
	// PerTopologyDomain asks for Count canaries in each domain.
	// +optional
	PerTopologyDomain bool `json:"perTopologyDomain,omitempty"`
}

// Check is a question that must be answered yes before the next grant.
//
// +kubebuilder:validation:XValidation:rule="has(self.cel) != has(self.prometheus)",message="a check has exactly one of cel and prometheus"
type Check struct {
	// Name of the check.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",message="must be letters, digits, dots, dashes and underscores"
	Name string `json:"name"`
	// CEL expression that must be true, over machine and node (those that wait), machines, nodes and pods of the pool.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	CEL string `json:"cel,omitempty"`
	// Prometheus query.
	// +optional
	Prometheus *PrometheusCheck `json:"prometheus,omitempty"`
}

// PrometheusCheck passes when the query returns at least one sample and every sample is not zero.
type PrometheusCheck struct {
	// URL of the Prometheus server.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9.-]+|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?(/[A-Za-z0-9._~:+%/-]*)?$')",message="must be an http or https URL without user or query, and without spaces"
	URL string `json:"url"`
	// Query in PromQL.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
}

// Window is a recurring time in which grants may be given.
type Window struct {
	// Schedule is when the window opens: minute hour day-of-month month day-of-week, in the wall clock of TimeZone.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*]|[0-5]?[0-9](-[0-5]?[0-9])?(,[0-5]?[0-9](-[0-5]?[0-9])?)*)(/[0-5]?[0-9])? ([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?(,([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)*)(/([01]?[0-9]|2[0-3]))? ([*]|([1-9]|0[1-9]|[12][0-9]|3[01])(-([1-9]|0[1-9]|[12][0-9]|3[01]))?(,([1-9]|0[1-9]|[12][0-9]|3[01])(-([1-9]|0[1-9]|[12][0-9]|3[01]))?)*)(/[1-9][0-9]?)? ([*]|([1-9]|0[1-9]|1[0-2]|[A-Za-z]{3})(-([1-9]|0[1-9]|1[0-2]|[A-Za-z]{3}))?(,([1-9]|0[1-9]|1[0-2]|[A-Za-z]{3})(-([1-9]|0[1-9]|1[0-2]|[A-Za-z]{3}))?)*)(/[1-9][0-9]?)? ([*]|([0-7]|[A-Za-z]{3})(-([0-7]|[A-Za-z]{3}))?(,([0-7]|[A-Za-z]{3})(-([0-7]|[A-Za-z]{3}))?)*)(/[1-7])?$')",message="must be a cron schedule of five fields (minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7), such as 0 22 * * 1-5"
	Schedule string `json:"schedule"`
	// Duration the window stays open, by the clock on the wall of TimeZone: 22:00 and 6h is until 04:00 also in the nights in which clocks change.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="must be longer than 0s and at most 168h, such as 6h"
	Duration metav1.Duration `json:"duration"`
	// TimeZone is an IANA name such as Europe/Berlin. Unset: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z]([A-Za-z0-9_+/-]*[A-Za-z0-9])?$')",message="must be an IANA time zone such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}

// MachineDeploymentStatus is written by the coordinator.
type MachineDeploymentStatus struct {
	// ObservedGeneration of the spec this status is for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Selector in text form, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// CurrentRevision names the ControllerRevision of the template.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// Replicas is how many machines serve.
	Replicas int32 `json:"replicas"`
	// Machines that match.
	Machines int32 `json:"machines"`
	// UpToDate machines.
	UpToDate int32 `json:"upToDate"`
	// Ready machines.
	Ready int32 `json:"ready"`
	// InFlight machines hold a slot.
	InFlight int32 `json:"inFlight"`
	// Failed machines.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// LastProgressTime is when the rollout last got on; unset while there is nothing to roll out or it is paused.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`
	// Paused is why no machine of the pool is begun now, in one word: Paused, Aborted or Stopped by a person, or the reason
	// for which the rollout paused itself, such as FailureThresholdReached. Empty: it goes on.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Paused string `json:"paused,omitempty"`
	// Conditions: Progressing, Available, Conflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a MachineDeployment.
const (
	// ConditionProgressing says how the rollout goes.
	ConditionProgressing = "Progressing"
	// ConditionAvailable says whether enough machines serve.
	ConditionAvailable = "Available"
	// ConditionConflict says that another MachineDeployment matches the same Machine.
	ConditionConflict = "Conflict"
)
