package verbs

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/pkg/status"
)

// Pause stops new grants for pools and machines. What a host has accepted finishes.
func (n *Namespace) Pause(targets []client.Object) []Change {
	var out []Change
	for _, o := range targets {
		c := Change{Before: o, Done: "already paused", Notes: n.inFlight(n.scope(o))}
		if !*paused(o) {
			c.After, c.Done = copyOf(o), "paused"
			*paused(c.After) = true
		}
		out = append(out, c)
	}
	return out
}

// scope is a machine, or the machines of a pool.
func (n *Namespace) scope(o client.Object) []*fleet.Machine {
	if d, ok := o.(*v1alpha1.MachineDeployment); ok {
		return n.machinesOf(d)
	}
	if m := n.Fleet.Find(o.GetName()); m != nil {
		return []*fleet.Machine{m}
	}
	return nil
}

// inFlight says what becomes of the machines that hold a slot once no grant is given.
func (n *Namespace) inFlight(machines []*fleet.Machine) []string {
	var out []string
	for _, m := range machines {
		switch {
		case m.Slot == nil:
		case taken(m):
			out = append(out, fmt.Sprintf("machine %s is at work (%s), and finishes", m.Name, progress(m)))
		default:
			out = append(out, fmt.Sprintf("machine %s has a place and has not begun: it is taken back, and its node given back", m.Name))
		}
	}
	return out
}

// taken says that the host has accepted the grant of its slot: nobody takes that back.
func taken(m *fleet.Machine) bool {
	if m.Slot.State == v1alpha1.SlotAccepted || m.Slot.State == v1alpha1.SlotVerifying {
		return true
	}
	return m.Status.Accepted != nil && m.Status.Accepted.GrantID == m.Slot.GrantID
}

func progress(m *fleet.Machine) string {
	if m.Slot.State == v1alpha1.SlotVerifying {
		return "the outcome is being verified"
	}
	if op := m.Status.LastOperation; op != nil && op.ID == m.Slot.GrantID {
		return status.Progress(op)
	}
	return "the host has accepted"
}

// Resume lets pools and machines go on, also those that were aborted.
func (n *Namespace) Resume(targets []client.Object) []Change {
	var out []Change
	for _, o := range targets {
		c := Change{Before: o, Done: "not paused"}
		_, aborted := o.GetAnnotations()[v1alpha1.AnnotationAbort]
		if *paused(o) || aborted {
			c.After, c.Done = copyOf(o), "resumed"
			*paused(c.After) = false
			removeAnnotation(c.After, v1alpha1.AnnotationAbort)
		}
		c.Notes = n.stillHeld(o)
		out = append(out, c)
	}
	return out
}

// stillHeld says who else keeps what was resumed from going on.
func (n *Namespace) stillHeld(o client.Object) []string {
	var out []string
	if n.Fleet.Stopped {
		out = append(out, fmt.Sprintf("the stop switch of namespace %s is on: kubectl refit resume --all", n.Name))
	}
	for _, m := range n.scope(o) {
		if _, isPool := o.(*v1alpha1.MachineDeployment); isPool && m.Spec.Paused {
			out = append(out, fmt.Sprintf("machine %s is paused itself: kubectl refit resume machine/%s", m.Name, m.Name))
		}
		if d := m.Pool.Deployment; d != nil && d.Name != o.GetName() && d.Spec.Paused {
			out = append(out, fmt.Sprintf("its pool %s is paused: kubectl refit resume %s", d.Name, d.Name))
		}
	}
	return out
}

// Stop turns the stop switch of the namespace on: every grant, of every pool.
func (n *Namespace) Stop() Change {
	notes := n.inFlight(n.Fleet.Machines)
	if n.Ledger == nil {
		l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: v1alpha1.LedgerName}, Spec: v1alpha1.LedgerSpec{Stopped: true}}
		return Change{After: l, Done: "stopped", Notes: notes}
	}
	return n.turn(true, "stopped", "already stopped", notes)
}

// Go turns the stop switch off.
func (n *Namespace) Go() Change {
	var notes []string
	for i := range n.Pools {
		if n.Pools[i].Spec.Paused {
			notes = append(notes, fmt.Sprintf("pool %s is paused itself: kubectl refit resume %s", n.Pools[i].Name, n.Pools[i].Name))
		}
	}
	if n.Ledger == nil {
		l := &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: v1alpha1.LedgerName}}
		return Change{Before: l, Done: "not stopped", Notes: notes}
	}
	return n.turn(false, "resumed", "not stopped", notes)
}

func (n *Namespace) turn(on bool, done, already string, notes []string) Change {
	if n.Ledger.Spec.Stopped == on {
		return Change{Before: n.Ledger, Done: already, Notes: notes}
	}
	after := n.Ledger.DeepCopy()
	after.Spec.Stopped = on
	return Change{Before: n.Ledger, After: after, Done: done, Notes: notes}
}
