package fleet

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TemplateManager owns what a template has written into Machines.
const TemplateManager = "refit-machinedeployment"

// ReasonNoMachines is that of a MachineDeployment whose selector matches no Machine.
const ReasonNoMachines = "NoMachines"

// HasLost says that a deployment is known to have lost all of its machines.
func HasLost(d *v1alpha1.MachineDeployment) bool {
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == ReasonNoMachines
}

// HadMachines says that a deployment had machines when it was last looked at, or has lost them.
func HadMachines(d *v1alpha1.MachineDeployment) bool { return d.Status.Machines > 0 || HasLost(d) }

// lost are the deployments that had machines and match none now. Some machines alone say
// nothing of those that others match.
func lost(f *Fleet, o Objects, claims []claim) []string {
	var out []string
	for _, c := range claims {
		matches := slices.ContainsFunc(f.Machines, func(m *Machine) bool { return slices.Contains(m.Claims, c.deployment.Name) })
		if !matches && (HasLost(c.deployment) || !o.Partial && HadMachines(c.deployment)) {
			out = append(out, c.deployment.Name)
		}
	}
	return out
}

// FromTemplate says that a template has written fields of the machine's spec.
func (m *Machine) FromTemplate() bool {
	return slices.ContainsFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == TemplateManager && e.Subresource == ""
	})
}
