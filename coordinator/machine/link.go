package machine

import (
	"context"
	"fmt"

	"github.com/refit-dev/refit/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// link ties the Machine to its Node by name and uid. The same name with another uid is
// another machine: what was known of the old one does not count for it.
func (r *Reconciler) link(_ context.Context, s *scope) (outcome, error) {
	node, ref := s.node(), s.status().NodeRef
	switch {
	case node == nil:
		return goOn, nil // keep the reference: a Node that is away for a while is not replaced
	case ref != nil && ref.UID == node.UID:
		return goOn, nil
	case ref != nil && ref.UID != "":
		r.event(s, corev1.EventTypeWarning, "NodeReplaced", "Link", fmt.Sprintf(
			"Node %s has uid %s and had %s: it is another machine, and starts anew", node.Name, node.UID, ref.UID))
		s.status().RolloutFailure = nil
		if s.slot() == nil {
			s.status().Assignment = nil
		}
	}
	s.status().NodeRef = &v1alpha1.NodeRef{Name: node.Name, UID: node.UID}
	return goOn, nil
}
