package machine

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// silence is how long a host in the middle of an operation may be away before it counts as failed.
const silence = 5 * time.Minute

// watchOver counts a host that has been away for too long as failed, and forgets that
// when it is back. The slot stays: only what is observed ends it.
func (r *Reconciler) watchOver(s *scope) {
	node, failure := s.node(), s.status().RolloutFailure
	if node == nil {
		return
	}
	if node.Ready {
		if failure != nil && failure.Class == fleet.ClassUnreachable {
			s.status().RolloutFailure = nil
		}
		return
	}
	away := r.Now().Sub(node.NotReadySince.Time)
	if away < silence {
		s.after(silence - away)
		return
	}
	if failure == nil {
		s.status().RolloutFailure = &v1alpha1.RolloutFailure{Class: fleet.ClassUnreachable, Failure: v1alpha1.Failure{
			Reason: fleet.ClassUnreachable,
			Message: fmt.Sprintf("the node has not been ready since %s, in the middle of an operation: see to the host; the operation goes on by itself when it is back",
				node.NotReadySince.UTC().Format(time.RFC3339)),
		}}
	}
}
