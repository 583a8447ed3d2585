package gates

import (
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func paused(_ *fleet.Fleet, m *fleet.Machine) *Verdict {
	if m.Spec.Paused {
		return &Verdict{Reason: ReasonPaused, Message: "the machine is paused: set spec.paused to false to go on" + lapsing(m)}
	}
	if d := m.Pool.Deployment; d != nil && d.Spec.Paused {
		if why, aborted := d.Annotations[v1alpha1.AnnotationAbort]; aborted {
			return &Verdict{Reason: ReasonPaused, Message: fmt.Sprintf("the rollout of MachineDeployment %s was aborted (%s): kubectl refit resume %s -n %s goes on with it%s", d.Name, why, d.Name, d.Namespace, lapsing(m))}
		}
		return &Verdict{Reason: ReasonPaused, Message: fmt.Sprintf("MachineDeployment %s is paused: set its spec.paused to false to go on%s", d.Name, lapsing(m))}
	}
	return nil
}

// lapsing says what a pause costs a host whose certificates end: upgrades are what renews them.
func lapsing(m *fleet.Machine) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionCertificatesExpiring); c != nil && c.Status == metav1.ConditionTrue {
		return "; meanwhile " + c.Message
	}
	return ""
}
