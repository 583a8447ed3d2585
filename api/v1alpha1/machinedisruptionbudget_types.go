package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MachineDisruptionBudget bounds how many machines may be unavailable, over any pools.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mdb,categories=refit
// +kubebuilder:printcolumn:name="Min-Available",type=string,JSONPath=`.spec.minAvailable`
// +kubebuilder:printcolumn:name="Max-Unavailable",type=string,JSONPath=`.spec.maxUnavailable`
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="Unavailable",type=integer,JSONPath=`.status.unavailable`
// +kubebuilder:printcolumn:name="Allowed",type=integer,JSONPath=`.status.disruptionsAllowed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Away",type=string,JSONPath=`.status.unavailableMachines`,priority=1
type MachineDisruptionBudget struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the budget.
	Spec MachineDisruptionBudgetSpec `json:"spec"`
	// Status of the budget.
	// +optional
	Status MachineDisruptionBudgetStatus `json:"status,omitempty"`
}

// MachineDisruptionBudgetList is a list of MachineDisruptionBudgets.
//
// +kubebuilder:object:root=true
type MachineDisruptionBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDisruptionBudget `json:"items"`
}

// MachineDisruptionBudgetSpec is the bound.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) != has(self.minAvailable)",message="a budget has exactly one of maxUnavailable and minAvailable"
type MachineDisruptionBudgetSpec struct {
	// Selector of the Machines in this namespace; an empty selector matches all.
	Selector metav1.LabelSelector `json:"selector"`
	// MaxUnavailable machines: a count, or a percentage of the matching machines rounded down.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a count of 0 or more, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MinAvailable machines: a count, or a percentage of the matching machines rounded up.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000 : self.matches('^(100|[1-9]?[0-9])%$')",message="must be a count of 0 or more, or a percentage from 0% to 100%"
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// TopologyKey is a Node label; unavailable machines may sit in at most one of its domains.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey,omitempty"`
}

// MachineDisruptionBudgetStatus is written by the coordinator.
type MachineDisruptionBudgetStatus struct {
	// ObservedGeneration of the spec this status is for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Machines that match and count: those that are OutOfService or stand by do not.
	Machines int32 `json:"machines"`
	// Unavailable machines.
	Unavailable int32 `json:"unavailable"`
	// UnavailableMachines are their names; of more than ten the first ones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	UnavailableMachines []string `json:"unavailableMachines,omitempty"`
	// DisruptionsAllowed now: how many more machines may be taken away. With a topologyKey they are in the domain of those
	// that are unavailable.
	DisruptionsAllowed int32 `json:"disruptionsAllowed"`
}
