package preview

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Kind of a PlanList.
const Kind = "PlanList"

// PlanList is what Refit would do to some machines, in the order in which they begin.
// It is what `kubectl refit plan` and `refit-agent plan` print with -o json and -o yaml;
// within its apiVersion fields are only added. It is no CRD.
type PlanList struct {
	// APIVersion is refit.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is PlanList.
	Kind string `json:"kind"`
	// Items are the machines that were asked for.
	Items []MachinePlan `json:"items"`
	// Findings are about the fleet as a whole.
	Findings []upgrade.Finding `json:"findings,omitempty"`
}

// MachinePlan is what Refit would do to one machine.
type MachinePlan struct {
	// Machine is its name, "" on a host whose Machine has none.
	Machine string `json:"machine"`
	// Namespace of the Machine.
	Namespace string `json:"namespace,omitempty"`
	// MachineDeployment whose template the plan is made with; "" for none.
	MachineDeployment string `json:"machineDeployment,omitempty"`
	// Roles of the machine.
	Roles []v1alpha1.Role `json:"roles,omitempty"`
	// State: UpToDate, Pending (there are hops), InOperation (work goes on there now), Sidelined (paused,
	// failed or out of service) or Refused.
	State State `json:"state"`
	// From are the versions that run.
	From *v1alpha1.ObservedVersions `json:"from,omitempty"`
	// To are the versions that spec wishes for, the template included.
	To *v1alpha1.Versions `json:"to,omitempty"`
	// Disruption is the most that any hop does: None, Restart, Drain or Reboot.
	Disruption v1alpha1.Disruption `json:"disruption"`
	// Drains counts the hops that take the machine's pods away.
	Drains int `json:"drains"`
	// Hash of the plan of the first hop, as the agent would publish it; "" when there is
	// nothing to do, or when too little is known to say.
	Hash string `json:"hash,omitempty"`
	// Steps of the first hop.
	Steps []Step `json:"steps"`
	// Hops of the machine up to its wish, or up to where it is refused.
	Hops []Hop `json:"hops"`
	// Findings about the machine: what preflight found, and what is not known.
	Findings []upgrade.Finding `json:"findings,omitempty"`
	// Refusal says why the machine does not arrive; nil: it does.
	Refusal *upgrade.Blocked `json:"refusal,omitempty"`
}

// State of a machine's plan.
type State string

// The states.
const (
	StateUpToDate    State = "UpToDate"
	StatePending     State = "Pending"
	StateInOperation State = "InOperation"
	StateSidelined   State = "Sidelined"
	StateRefused     State = "Refused"
)

// Hop is one window of a machine.
type Hop struct {
	// Order is the place of the hop among all hops of the fleet, from 1.
	Order int `json:"order"`
	// Target of the hop; what it leaves alone is unset.
	Target v1alpha1.Target `json:"target"`
	// KubeadmRole in the hop: First or Other, "" when kubeadm has nothing to do.
	KubeadmRole v1alpha1.KubeadmRole `json:"kubeadmRole,omitempty"`
	// Skew is the range of API servers that the kubelet will meet.
	Skew *v1alpha1.Skew `json:"skew,omitempty"`
	// Disruption of the hop.
	Disruption v1alpha1.Disruption `json:"disruption"`
	// Steps of the hop.
	Steps []Step `json:"steps"`
}

// Step is a step for people, and for programs with its parameters.
type Step struct {
	// Description for people, as in the Machine's status.plan.
	Description string `json:"description"`
	upgrade.Step
}

// Findings that say what a plan is made without.
const (
	// FindingFactsUnknown: only what the Machine reports is known of the host.
	FindingFactsUnknown = "FactsUnknown"
	// FindingCandidatesUnknown: what some repository offers is not known.
	FindingCandidatesUnknown = "CandidatesUnknown"
	// FindingHostReplaced: the facts are of another host than the one that has reported.
	FindingHostReplaced = "HostReplaced"
	// FindingHostUnproven: nothing shows that the facts are of the host that has reported.
	FindingHostUnproven = "HostUnproven"
	// FindingRecordIgnored: what the host recorded of what it ran does not count.
	FindingRecordIgnored = "RecordIgnored"
	// FindingInOperation: work goes on at the machine now.
	FindingInOperation = "InOperation"
	// FindingSidelined: the machine is left where it is.
	FindingSidelined = "Sidelined"
)

// Refused are the machines of the list that are refused.
func (l *PlanList) Refused() []string {
	var names []string
	for i := range l.Items {
		if l.Items[i].Refusal != nil {
			names = append(names, l.name(&l.Items[i]))
		}
	}
	return names
}

// name tells the machines of several namespaces apart.
func (l *PlanList) name(p *MachinePlan) string {
	if slices.ContainsFunc(l.Items, func(other MachinePlan) bool { return other.Namespace != p.Namespace }) {
		return p.Namespace + "/" + p.Machine
	}
	return p.Machine
}
