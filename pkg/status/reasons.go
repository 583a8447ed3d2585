package status

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the coordinator's conditions. Reasons are open strings: gates, planner
// and agent add their own, which are passed on as they are.
const (
	ReasonPaused             = "Paused"
	ReasonNodeReady          = "NodeReady"
	ReasonStandingBy         = "StandingBy"
	ReasonNodeNotReady       = "NodeNotReady"
	ReasonNodeNotFound       = "NodeNotFound"
	ReasonNodeUnreachable    = "NodeUnreachable"
	ReasonCordoned           = "Cordoned"
	ReasonUncordoned         = "Uncordoned"
	ReasonInOperation        = "InOperation"
	ReasonAgentNotReported   = "AgentNotReported"
	ReasonUpToDate           = "UpToDate"
	ReasonOutdated           = "Outdated"
	ReasonStaging            = "Staging"
	ReasonStagingFailed      = "StagingFailed"
	ReasonApplying           = "Applying"
	ReasonVerifying          = "Verifying"
	ReasonOutOfService       = "OutOfService"
	ReasonDraining           = "Draining"
	ReasonDrained            = "Drained"
	ReasonDrainFree          = "DrainFree"
	ReasonDrainWaits         = "DrainWaits"
	ReasonForecastFailed     = "ForecastFailed"
	ReasonDrainNotNeeded     = "DrainNotNeeded"
	ReasonHealthy            = "Healthy"
	ReasonNotHealthyYet      = "NotHealthyYet"
	ReasonFieldsOverridden   = "FieldsOverridden"
	ReasonSkewViolated       = "SkewViolated"
	ReasonWaitingForSlot     = "WaitingForSlot"
	ReasonDeploymentConflict = "DeploymentConflict"
)

func condition(kind string, state metav1.ConditionStatus, reason, message string) metav1.Condition {
	if reason == "" {
		reason = "Unknown"
	}
	return metav1.Condition{Type: kind, Status: state, Reason: reason, Message: message}
}

// Ready is a machine that serves.
func Ready() metav1.Condition {
	return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, ReasonNodeReady, "the node is ready and schedulable")
}

// StandingBy is a machine that is well, and kept empty.
func StandingBy() metav1.Condition {
	return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, ReasonStandingBy, "the node is ready, and cordoned to stand by")
}

// NotReady is a machine that does not serve, and why.
func NotReady(reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
}

// ReadyUnknown is a machine of which nothing is known.
func ReadyUnknown(reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionReady, metav1.ConditionUnknown, reason, message)
}

// UpToDate is a machine that runs what its spec wants.
func UpToDate() metav1.Condition {
	return condition(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, ReasonUpToDate, "what runs is what spec wants")
}

// NotUpToDate is a machine that does not, with what it takes or what is in the way.
func NotUpToDate(reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, reason, message)
}

// UpToDateUnknown is a machine whose versions nobody has reported.
func UpToDateUnknown() metav1.Condition {
	return condition(v1alpha1.ConditionUpToDate, metav1.ConditionUnknown, ReasonAgentNotReported,
		"the agent has not reported yet: check that refit-agent runs on the host and may reach the API server")
}

// Waiting is a machine whose plan is ready, and the gate that holds it back.
func Waiting(reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionWaiting, metav1.ConditionTrue, reason, message)
}

// Draining is a node that pods are still leaving.
func Draining(message string) metav1.Condition {
	return condition(v1alpha1.ConditionDrained, metav1.ConditionFalse, ReasonDraining, message)
}

// Drained is a node that the pods have left.
func Drained(message string) metav1.Condition {
	return condition(v1alpha1.ConditionDrained, metav1.ConditionTrue, ReasonDrained, message)
}

// DrainForecast is what is foreseen of the drain of a machine that waits for one.
func DrainForecast(state metav1.ConditionStatus, reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionForecast, state, reason, message)
}

// Healthy is a machine on which Node, DaemonSets and agent agree that all is well.
func Healthy() metav1.Condition {
	return condition(v1alpha1.ConditionHealthy, metav1.ConditionTrue, ReasonHealthy, "Node, DaemonSets and agent agree that the machine is well")
}

// Unhealthy is a machine on which they do not.
func Unhealthy(reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionHealthy, metav1.ConditionFalse, reason, message)
}

// Stalled is a machine on which nothing goes on without a person.
func Stalled(reason, message string) metav1.Condition {
	return condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
}

// SkewViolated is a kubelet outside of what its API servers support, and what to do.
func SkewViolated(message string) metav1.Condition {
	return condition(v1alpha1.ConditionSkewViolated, metav1.ConditionTrue, ReasonSkewViolated, message)
}

// Overridden is a machine with fields that its MachineDeployment may not write.
func Overridden(message string) metav1.Condition {
	return condition(v1alpha1.ConditionOverridden, metav1.ConditionTrue, ReasonFieldsOverridden, message)
}

// RetryHint is what a person can do about a failure.
func RetryHint(machine string) string {
	return "change the spec, or try again with: " + RetryCommand(machine)
}

// NextCommand names the machine, with its spec as it is now, as the next one of a pool whose strategy is Manual.
func NextCommand(m *v1alpha1.Machine) string {
	return fmt.Sprintf("kubectl annotate machine %s -n %s %s=%d --overwrite", m.Name, m.Namespace, v1alpha1.AnnotationNext, m.Generation)
}

// RetryCommand asks for another try at once.
func RetryCommand(machine string) string {
	return "kubectl refit retry " + machine
}
