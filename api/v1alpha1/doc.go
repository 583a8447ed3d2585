// Package v1alpha1 holds the Refit API: Machine, MachineDeployment,
// MachineDisruptionBudget and the coordinator's Ledger.
//
// Desired state is public as soon as it is written; permission to change a host
// is a separate thing (status.grant) and only the coordinator gives it. Every
// status field has one writer: the comments on MachineStatus say which.
//
// +kubebuilder:object:generate=true
// +groupName=refit.dev
package v1alpha1
