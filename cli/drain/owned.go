package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// Owned says why a node is Refit's at the moment, "" when it is not: a slot of its Machine
// is taken, or its cordon carries Refit's marker.
func Owned(n *corev1.Node, ledgers []v1alpha1.Ledger) string {
	for _, l := range ledgers {
		for _, s := range l.Spec.Slots {
			if s.Machine == n.Name {
				return fmt.Sprintf("Machine %s/%s is in an operation of Refit's (grant %s, %s)", l.Namespace, s.Machine, s.GrantID, s.State)
			}
		}
	}
	if by, marked := n.Annotations[v1alpha1.AnnotationCordonedBy]; marked {
		return fmt.Sprintf("node %s is cordoned by Refit (grant %s)", n.Name, by)
	}
	return ""
}
