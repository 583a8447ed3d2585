package verbs

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
)

// DefaultAbortReason is that of a person who gives none.
const DefaultAbortReason = "no reason given"

// Abort ends the rollout of pools: paused, and why.
func (n *Namespace) Abort(targets []client.Object, reason string) []Change {
	var out []Change
	for _, o := range targets {
		c := Change{Before: o, Done: "already aborted", Notes: n.inFlight(n.scope(o))}
		was, aborted := o.GetAnnotations()[v1alpha1.AnnotationAbort]
		if reason == DefaultAbortReason && aborted {
			reason = was
		}
		if !aborted || !*paused(o) || was != reason {
			c.After, c.Done = copyOf(o), "aborted"
			*paused(c.After) = true
			annotate(c.After, v1alpha1.AnnotationAbort, reason)
		}
		c.Notes = append(c.Notes, "machines that are done stay as they are: kubectl refit undo "+o.GetName()+" brings the pool back")
		out = append(out, c)
	}
	return out
}
