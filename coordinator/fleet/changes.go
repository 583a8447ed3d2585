package fleet

import (
	"sync/atomic"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Changes counts what has changed in what the planner sees of fleets. Whoever hears of a change
// counts it before anybody looks because of it; then nobody who looks goes by an older view.
type Changes struct{ n atomic.Uint64 }

// Add counts one.
func (c *Changes) Add() { c.n.Add(1) }

// Count is how many there were.
func (c *Changes) Count() uint64 { return c.n.Load() }

// SameToPlanner says that the planner makes the same of a fleet with one as with the other: it
// compares what ForPlanner reads of a Machine.
func SameToPlanner(a, b *v1alpha1.Machine) bool {
	return equality.Semantic.DeepEqual(upgrade.StateOf(a, nil, nil), upgrade.StateOf(b, nil, nil)) &&
		equality.Semantic.DeepEqual(offersOf(a), offersOf(b))
}

// offers are what upgrade.PassedReleases reads of a Machine next to its state: which releases
// of the minors in between it can get, and which one it is on its way to.
type offers struct {
	Passed   []v1alpha1.PassedMinor
	Assigned v1alpha1.KubernetesVersion
}

func offersOf(m *v1alpha1.Machine) offers {
	o := offers{Passed: m.Status.PassedMinors}
	if a := m.Status.Assignment; a != nil {
		o.Assigned = a.Target.ControlPlane
	}
	return o
}
