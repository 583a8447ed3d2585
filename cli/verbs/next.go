package verbs

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Next names machines that may go now, of pools whose strategy leaves that to a person. The
// word is for the spec as it is: another spec needs another word.
func (n *Namespace) Next(targets []client.Object) ([]Change, error) {
	var out []Change
	for _, o := range targets {
		m := n.Fleet.Find(o.GetName())
		if why := notManual(m); why != "" {
			return nil, Refused{why}
		}
		generation := strconv.FormatInt(m.Generation, 10)
		c := Change{Before: m.Machine, Done: "already next"}
		if m.Annotations[v1alpha1.AnnotationNext] != generation {
			c.After, c.Done, c.Exact = copyOf(m.Machine), "next", true
			annotate(c.After, v1alpha1.AnnotationNext, generation)
		}
		out = append(out, c)
	}
	return out, nil
}

func notManual(m *fleet.Machine) string {
	d := m.Pool.Deployment
	switch {
	case len(m.Claims) > 1:
		return fmt.Sprintf("machine %s is selected by several pools, and goes nowhere before that is mended", m.Name)
	case d == nil:
		return fmt.Sprintf("machine %s has no pool, so it goes by itself when it may", m.Name)
	case d.Spec.Strategy == nil || d.Spec.Strategy.Type != "Manual":
		return fmt.Sprintf("pool %s of machine %s goes through its machines by itself: set its spec.strategy.type to Manual to name them", d.Name, m.Name)
	}
	return ""
}

// Refused says that nothing was done, and what would help.
type Refused struct{ Message string }

// Error implements error.
func (r Refused) Error() string { return r.Message }
