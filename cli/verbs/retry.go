package verbs

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Retry asks for another try of machines that have failed; of a pool, all of them.
func (n *Namespace) Retry(targets []client.Object, now time.Time) []Change {
	var out []Change
	for _, o := range targets {
		d, isPool := o.(*v1alpha1.MachineDeployment)
		if !isPool {
			out = append(out, n.retry(n.Fleet.Find(o.GetName()), now))
			continue
		}
		failed := slices.DeleteFunc(slices.Clone(n.machinesOf(d)), func(m *fleet.Machine) bool { return failure(m) == "" })
		if len(failed) == 0 {
			out = append(out, Change{Before: d, Done: "not retried: none of its machines has failed"})
		}
		for _, m := range failed {
			out = append(out, n.retry(m, now))
		}
	}
	return slices.CompactFunc(out, func(a, b Change) bool { return a.Before.GetUID() == b.Before.GetUID() })
}

func (n *Namespace) retry(m *fleet.Machine, now time.Time) Change {
	why := failure(m)
	if why == "" {
		return Change{Before: m.Machine, Done: "not retried: it has not failed"}
	}
	c := Change{Before: m.Machine, After: copyOf(m.Machine), Done: "retried", Notes: []string{fmt.Sprintf("machine %s had failed: %s", m.Name, why)}}
	annotate(c.After, v1alpha1.AnnotationRetry, now.UTC().Format(time.RFC3339Nano))
	if m.Slot != nil && taken(m) {
		c.Notes = append(c.Notes, fmt.Sprintf("machine %s is at work (%s): it is tried again when that has ended", m.Name, progress(m)))
	}
	return c
}

// failure is what a retry would clear, "" for nothing.
func failure(m *fleet.Machine) string {
	if f := m.Status.RolloutFailure; f != nil {
		return f.Reason + ": " + f.Message
	}
	if f := m.Status.HostFailure; f != nil {
		return f.Reason + ": " + f.Message
	}
	return ""
}
