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
		equality.Semantic.DeepEqual(a.Status.PassedMinors, b.Status.PassedMinors) && assignedPlane(a) == assignedPlane(b)
}

// assignedPlane is the release that a control plane is on its way to, which its peers take as well.
func assignedPlane(m *v1alpha1.Machine) v1alpha1.KubernetesVersion {
	if m.Status.Assignment == nil {
		return ""
	}
	return m.Status.Assignment.Target.ControlPlane
}
