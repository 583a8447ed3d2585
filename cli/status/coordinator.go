package status

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// LeaseNamespace and LeaseName are where the coordinator that leads says that it lives.
const (
	LeaseNamespace = "refit-system"
	LeaseName      = "refit-coordinator"
)

// Coordinator is what is known of the coordinator: its Lease, nil where there is none.
// Known is false for somebody who may not read it.
type Coordinator struct {
	Known bool
	Lease *coordinationv1.Lease
	Now   time.Time
}

// unseen words a spec that nobody has judged yet; "" when the newest was.
func (c Coordinator) unseen(generation, seen int64) string {
	if seen >= generation {
		return ""
	}
	return fmt.Sprintf("NotSeen: generation %d not yet seen; %s", generation, c.answers())
}

// answers says whether somebody is there to judge it, and what to look at.
func (c Coordinator) answers() string {
	const look = "see kubectl get pods -n " + LeaseNamespace
	switch {
	case !c.Known:
		return "what is shown is older: if that lasts, see whether the coordinator runs"
	case c.Lease == nil || c.Lease.Spec.RenewTime == nil:
		return "there is no coordinator (no Lease " + LeaseNamespace + "/" + LeaseName + "): " + look + ", or run kubectl refit install"
	case c.away():
		return fmt.Sprintf("the coordinator has not answered since %s: %s", c.Lease.Spec.RenewTime.UTC().Format(time.RFC3339), look)
	}
	return "the coordinator runs, and has not come to it yet"
}

// away says that nobody holds the lead: it was given up, or has run out.
func (c Coordinator) away() bool {
	spec := c.Lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return true
	}
	lasts := 30 * time.Second
	if spec.LeaseDurationSeconds != nil {
		lasts = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	return c.Now.Sub(spec.RenewTime.Time) > lasts
}
