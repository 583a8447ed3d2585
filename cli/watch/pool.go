package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/cli/status"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/machinedeployment"
)

// pool is a rollout, summed up.
type pool struct {
	name    string
	target  string
	total   int
	count   [len(classNames)]int
	left    fleet.Estimate // until all are up to date
	verdict verdict
	says    string // what holds it, "" while it goes on
}

// verdict is how a rollout stands.
type verdict int

const (
	goesOn verdict = iota
	complete
	// paused by a person: it goes on when they say so.
	paused
	// halted by itself: nothing goes on without a person.
	halted
)

// poolOf sums a pool up from the rows of its machines.
func poolOf(d *v1alpha1.MachineDeployment, rows []row, slots map[string]*v1alpha1.Slot, now time.Time) pool {
	p := pool{name: d.Name, target: clean(status.Wish(d.Spec.Template.Spec.Versions)), total: len(rows)}
	stuck := 0
	for _, r := range rows {
		p.count[r.class]++
		if meta.IsStatusConditionTrue(r.machine.Status.Conditions, v1alpha1.ConditionStalled) && r.class == failed {
			stuck++
		}
	}
	p.verdict, p.says = verdictOf(d)
	if p.verdict == goesOn && stuck > 0 && stuck+p.count[done] == p.total {
		p.verdict, p.says = halted, fmt.Sprintf("%d failed, and nothing else is left to do", stuck)
	}
	if p.verdict == goesOn {
		p.left = estimate(d, rows, slots, now)
	}
	return p
}

// selfPaused are the reasons with which a rollout waits for a person, and not for time.
var selfPaused = []string{
	machinedeployment.ReasonFailureThreshold, machinedeployment.ReasonMachineConflict, machinedeployment.ReasonTemplateRefused,
	machinedeployment.ReasonWindowInvalid, machinedeployment.ReasonCheckInvalid, machinedeployment.ReasonNoMachines,
}

func verdictOf(d *v1alpha1.MachineDeployment) (verdict, string) {
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case c == nil || d.Status.ObservedGeneration < d.Generation:
		return goesOn, "no coordinator has seen this spec yet"
	case c.Status == metav1.ConditionFalse && slices.Contains(selfPaused, c.Reason):
		return halted, clean(c.Reason + ": " + c.Message)
	case d.Spec.Paused:
		return paused, clean(c.Reason + ": " + c.Message)
	case c.Status == metav1.ConditionFalse:
		return goesOn, clean(c.Reason + ": " + c.Message)
	case c.Reason == machinedeployment.ReasonComplete, c.Reason == machinedeployment.ReasonNoMachines:
		return complete, ""
	}
	return goesOn, ""
}

// estimate is how long the machines that are left take, as their own operations and those of their pool have taken
// before, soak included, with as many at once as the pool allows. What holds a machine meanwhile is not foreseen.
func estimate(d *v1alpha1.MachineDeployment, rows []row, slots map[string]*v1alpha1.Slot, now time.Time) fleet.Estimate {
	p := &fleet.Pool{Name: d.Name, Deployment: d}
	for _, r := range rows {
		p.Machines = append(p.Machines, &fleet.Machine{Machine: r.machine, Pool: p, Slot: slots[r.machine.Name]})
	}
	var soak, sum, longest time.Duration
	if s := p.Rolling().Soak; s != nil {
		soak = s.Duration
	}
	out, drains := fleet.Estimate{}, false
	for i, m := range p.Machines {
		if rows[i].class == done || rows[i].class == failed || m.OutOfService() {
			continue
		}
		usual, samples, drained := typical(m)
		if samples == 0 {
			continue
		}
		out.Samples, drains = max(out.Samples, samples), drains || drained
		needs := time.Duration(hops(m.Machine)) * (usual + soak)
		if m.Slot != nil {
			needs = max(needs-now.Sub(m.Slot.ReservedTime.Time), 0)
		}
		sum, longest = sum+needs, max(longest, needs)
	}
	lanes := p.MaxInFlight()
	if drains {
		lanes = p.MaxUnavailable()
	}
	out.Duration = max(sum/time.Duration(max(lanes, 1)), longest)
	return out
}

// typical is the middle of what was measured of operations that drain the node, as most do, or else of the others.
func typical(m *fleet.Machine) (usual time.Duration, samples int, drains bool) {
	for _, drains := range []bool{true, false} {
		if e := m.Pool.Measured(drains, 50); e.Samples > 0 {
			return e.Duration, e.Samples, drains
		}
	}
	return 0, 0, false
}

// hops are the minors that the control plane of a machine has still to walk, at least one.
func hops(m *v1alpha1.Machine) int {
	wish, seen := m.Spec.Versions, m.Status.Versions
	if wish == nil || seen == nil || wish.ControlPlane == "" || seen.ControlPlane == nil {
		return 1
	}
	return max(minor(string(wish.ControlPlane))-minor(seen.ControlPlane.APIServer), 1)
}

// minor of v1.37.2; 0 of what is none.
func minor(version string) int {
	var major, n int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &major, &n); err != nil {
		return 0
	}
	return n
}

// leftText is the estimate for people.
func (p *pool) leftText() string {
	switch {
	case p.verdict != goesOn || p.count[done] == p.total:
		return ""
	case p.left.Samples == 0:
		return "no estimate yet"
	}
	return fmt.Sprintf("about %s left", duration.HumanDuration(max(p.left.Duration, time.Second)))
}

// state is one word where the rollout does not simply go on.
func (p *pool) state() string {
	switch p.verdict {
	case complete:
		return "complete"
	case paused:
		return "PAUSED"
	case halted:
		return "HALTED"
	case goesOn:
	}
	if p.count[done] == p.total {
		return "up to date"
	}
	return ""
}
