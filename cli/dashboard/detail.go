package dashboard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/verbs"
)

// Detail is all that the page shows of one machine.
type Detail struct {
	Name          string                     `json:"name"`
	Roles         []v1alpha1.Role            `json:"roles"`
	Phase         string                     `json:"phase"`
	Versions      *v1alpha1.ObservedVersions `json:"versions,omitempty"`
	Wants         *v1alpha1.Versions         `json:"wants,omitempty"`
	OS            string                     `json:"os,omitempty"`
	Kernel        string                     `json:"kernel,omitempty"`
	Disruption    v1alpha1.Disruption        `json:"disruption,omitempty"`
	Steps         []string                   `json:"steps,omitempty"`
	Findings      []v1alpha1.Finding         `json:"findings,omitempty"`
	Operation     *v1alpha1.Operation        `json:"operation,omitempty"`
	HostFailure   *v1alpha1.Failure          `json:"hostFailure,omitempty"`
	RolloutFailed *v1alpha1.RolloutFailure   `json:"rolloutFailure,omitempty"`
	Conditions    []metav1.Condition         `json:"conditions,omitempty"`
	History       []v1alpha1.HistoryEntry    `json:"history,omitempty"`
	// Why is what kubectl refit why says.
	Why *verbs.Explanation `json:"why,omitempty"`
	// WhyFailed is why it cannot be said.
	WhyFailed string `json:"whyFailed,omitempty"`
}

func detailOf(m *v1alpha1.Machine) Detail {
	d := Detail{
		Name: m.Name, Roles: m.Spec.Roles, Phase: phaseOf(m), Versions: m.Status.Versions, Wants: m.Spec.Versions,
		Operation: m.Status.LastOperation, HostFailure: m.Status.HostFailure, RolloutFailed: m.Status.RolloutFailure,
		Conditions: m.Status.Conditions, History: m.Status.History,
	}
	if os := m.Status.OS; os != nil {
		d.OS, d.Kernel = os.PrettyName, os.Kernel
	}
	if p := m.Status.Plan; p != nil {
		d.Disruption, d.Steps, d.Findings = p.Disruption, p.Steps, p.Findings
	}
	return d
}
