package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LedgerName is the name of the one Ledger of a namespace.
const LedgerName = "refit"

// Ledger holds the coordinator's in-flight slots and its epoch: the truth, of
// which each Machine's grant is the projection. There is one per namespace, named
// refit. Only the coordinator writes it; operators use kubectl refit.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=refit
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.spec.epoch`
// +kubebuilder:printcolumn:name="Machines",type=string,JSONPath=`.spec.slots[*].machine`
// +kubebuilder:printcolumn:name="Stopped",type=boolean,JSONPath=`.spec.stopped`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'refit'",message="the ledger of a namespace is named refit"
type Ledger struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the ledger.
	// +optional
	Spec LedgerSpec `json:"spec,omitempty"`
}

// LedgerList is a list of Ledgers.
//
// +kubebuilder:object:root=true
type LedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ledger `json:"items"`
}

// LedgerSpec is changed by compare-and-swap on the object's resourceVersion only.
type LedgerSpec struct {
	// Epoch of the coordinator that leads; it only grows.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// Stopped halts every new grant in the namespace.
	// +optional
	Stopped bool `json:"stopped,omitempty"`
	// Slots in flight. They end by observed state or an operator's forget, never by clock.
	// +optional
	// +listType=map
	// +listMapKey=machine
	// +kubebuilder:validation:MaxItems=5000
	Slots []Slot `json:"slots,omitempty"`
}

// SlotState is how far a slot has come.
//
// +kubebuilder:validation:Enum=Reserved;Granted;Accepted;Verifying
type SlotState string

// A slot is reserved before the cordon, granted after the drain, accepted by the agent, and verified before release.
const (
	SlotReserved  SlotState = "Reserved"
	SlotGranted   SlotState = "Granted"
	SlotAccepted  SlotState = "Accepted"
	SlotVerifying SlotState = "Verifying"
)

// Slot is one machine in flight.
type Slot struct {
	// Machine that holds the slot.
	Machine string `json:"machine"`
	// MachineUID tells it from a later machine of the same name.
	MachineUID string `json:"machineUID"`
	// AssignmentID it is for.
	AssignmentID string `json:"assignmentID"`
	// GrantID is chosen when the slot is reserved; the grant carries it.
	GrantID string `json:"grantID"`
	// PlanHash of the plan that it is for.
	PlanHash string `json:"planHash"`
	// Disruption of the plan: None and Restart do not charge the availability budget.
	Disruption Disruption `json:"disruption"`
	// StoodBy says that the machine stood by when the slot was reserved: nobody misses it, and it stands by again where
	// the work fails.
	// +optional
	StoodBy bool `json:"stoodBy,omitempty"`
	// DrainsOnly says that the slot is for emptying the node of a machine that is to stand by, and for no work on its
	// host: it has no assignment and no plan.
	// +optional
	DrainsOnly bool `json:"drainsOnly,omitempty"`
	// State of the slot.
	State SlotState `json:"state"`
	// From are the versions that ran when the slot was reserved; for history and undo.
	// +optional
	From *Versions `json:"from,omitempty"`
	// WaitingTime is since when the plan was ready and the machine waited for this slot.
	// +optional
	WaitingTime *metav1.Time `json:"waitingTime,omitempty"`
	// ReservedTime is when it was reserved, by the coordinator's clock; for people and history.
	ReservedTime metav1.Time `json:"reservedTime"`
	// DrainedTime is when the drain ended.
	// +optional
	DrainedTime *metav1.Time `json:"drainedTime,omitempty"`
	// GrantedTime is when the grant was written.
	// +optional
	GrantedTime *metav1.Time `json:"grantedTime,omitempty"`
	// AppliedTime is when the host reported the end of its operation.
	// +optional
	AppliedTime *metav1.Time `json:"appliedTime,omitempty"`
	// UncordonedTime is when the machine was healthy and given back; the soak starts here.
	// +optional
	UncordonedTime *metav1.Time `json:"uncordonedTime,omitempty"`
}

// Names of annotations and labels that Refit writes on other objects.
const (
	// AnnotationCordonedBy marks a cordon of ours on a Node; its value is the grant id. It is written in the same update as the cordon.
	AnnotationCordonedBy = "refit.dev/cordoned-by"
	// AnnotationFoundCordonedBy marks a Node that someone else had cordoned when a grant came to cordon it; its value is the
	// grant id. The cordon stays theirs, and where they take it back the grant does not cordon the Node again.
	AnnotationFoundCordonedBy = "refit.dev/found-cordoned-by"
	// AnnotationExcludedBy marks a Node's exclusion from external load balancers as ours; its value is the grant id. It is
	// written in the same update as that label.
	AnnotationExcludedBy = "refit.dev/load-balancers-excluded-by"
	// LabelDrainOrder on a pod is a whole number: pods of a higher one leave a node after those of a lower one. Without it: 0.
	LabelDrainOrder = "refit.dev/drain-order"
	// FinalizerMachine holds a Machine until its operation ends or an operator forgets it.
	FinalizerMachine = "refit.dev/machine"
	// AnnotationHandedOver of a Ledger is the uid of the pod that last gave the lead away before its node was to be emptied, and when.
	AnnotationHandedOver = "refit.dev/handed-over"
	// AnnotationRetry asks for another try; any new value is one retry.
	AnnotationRetry = "refit.dev/retry"
	// AnnotationNext on a Machine names it as the next one of a pool whose strategy is Manual; its value is the
	// metadata.generation of the Machine for which it may go, so that it does not outlive the spec that was meant.
	AnnotationNext = "refit.dev/next"
	// AnnotationAbort on a MachineDeployment that is paused says that its rollout was aborted; its value is why.
	AnnotationAbort = "refit.dev/abort"
	// AnnotationForget on a Machine ends the slot with the grant id that is its value, and no other, without waiting for
	// the host: it is lost.
	AnnotationForget = "refit.dev/forget"
)
