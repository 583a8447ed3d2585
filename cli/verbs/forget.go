package verbs

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Forget ends the slots of hosts that are lost. Each change says in its notes what is lost.
func (n *Namespace) Forget(targets []client.Object) []Change {
	var out []Change
	for _, o := range targets {
		m := n.Fleet.Find(o.GetName())
		c := Change{Before: m.Machine, Done: "not forgotten: it holds no place"}
		if m.Slot != nil {
			c.After, c.Done, c.Notes = copyOf(m.Machine), "forgotten", lossOf(m)
			annotate(c.After, v1alpha1.AnnotationForget, m.Slot.GrantID)
		}
		out = append(out, c)
	}
	return out
}

func lossOf(m *fleet.Machine) []string {
	if !taken(m) {
		return []string{fmt.Sprintf("machine %s has a place (grant %s) that it has not accepted: it is taken back, and nothing is lost", m.Name, m.Slot.GrantID)}
	}
	notes := []string{
		fmt.Sprintf("machine %s is at work (%s) under grant %s: nobody waits for its end any more, and how it goes is lost", m.Name, progress(m), m.Slot.GrantID),
		"its place goes to another machine. Where the host lives after all, it goes on with its work, beside that other one",
		"the machine counts as failed until kubectl refit retry, and its node stays cordoned until it is Ready",
	}
	if !m.DeletionTimestamp.IsZero() {
		notes = append(notes, "the Machine is being deleted, and goes at once: what it knew of the host goes with it")
	}
	return notes
}
