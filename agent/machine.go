package agent

import (
	"context"
	"strconv"

	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
)

// observe takes in what the watch says. After an outage this is the first sign that
// the API server is back, so a write that waits is tried at once.
func (a *Agent) observe(ctx context.Context, e watch.Event) {
	if e.Fresh {
		a.reporting.notBefore = a.now()
	}
	if e.Machine == nil {
		a.machine = nil
		return
	}
	if e.Fresh && a.machine != nil && a.machine.UID != e.Machine.UID {
		a.machine = nil
	}
	a.see(e.Machine, e.Fresh)
}

// see replaces the view of the Machine, unless it is older than what is known: after a
// write of ours the watch may still deliver what was before it.
func (a *Agent) see(machine *v1alpha1.Machine, fresh bool) {
	if machine == nil || !fresh && a.machine != nil && older(machine, a.machine) {
		return
	}
	a.machine = machine
	a.epoch = max(a.epoch, machine.Status.ObservedEpoch)
	if assignment := machine.Status.Assignment; assignment != nil {
		a.epoch = max(a.epoch, assignment.Epoch)
	}
	if grant := machine.Status.Grant; grant != nil {
		a.epoch = max(a.epoch, grant.Epoch)
	}
}

func older(a, b *v1alpha1.Machine) bool {
	left, errLeft := strconv.ParseUint(a.ResourceVersion, 10, 64)
	right, errRight := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return a.UID == b.UID && errLeft == nil && errRight == nil && left < right
}

// newHost says that the Machine's status is of another host with this name.
func (a *Agent) newHost() bool {
	if a.machine == nil || a.machine.Status.Host == nil {
		return false
	}
	known := a.machine.Status.Host.MachineID
	return known != "" && a.MachineID != "" && known != a.MachineID
}
