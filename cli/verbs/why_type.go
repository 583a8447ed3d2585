package verbs

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/pkg/status"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// toType are the commands that end what holds the machine, where a command does; for what
// others do, those that show how far they are.
func (n *Namespace) toType(e Explanation, m *fleet.Machine, holders []*fleet.Machine) []string {
	in := " -n " + n.Name
	switch e.Standing {
	case StandingUpToDate:
		if e.Reason == status.ReasonFieldsOverridden {
			return []string{"kubectl refit release " + m.Name + in}
		}
	case StandingInFlight:
		if m.Slot.State == v1alpha1.SlotReserved {
			return []string{"kubectl refit forecast machine/" + m.Name + in}
		}
	case StandingPreparing:
		if failure(m) != "" {
			return []string{"kubectl refit retry " + m.Name + in}
		}
		return each(holders, func(m *fleet.Machine) string { return nudge(m, in) })
	case StandingWaiting:
		if of := remedies[e.Reason]; of != nil {
			return of(n, m, in)
		}
		if asksEtcd[e.Reason] {
			return each(holders, func(m *fleet.Machine) string {
				return "kubectl get machine " + m.Name + in + " -o jsonpath={.status.etcd}"
			})
		}
		return each(holders, func(m *fleet.Machine) string { return nudge(m, in) })
	case StandingNext:
	}
	return nil
}

var asksEtcd = map[string]bool{gates.ReasonEtcdNotWell: true, gates.ReasonEtcdUnknown: true}

// remedies of what a command ends, or shows better than a machine could, by the reason.
var remedies = map[string]func(n *Namespace, m *fleet.Machine, in string) []string{
	gates.ReasonStopped:          just(func(*fleet.Machine) string { return "kubectl refit resume --all" }),
	gates.ReasonPaused:           just(resume),
	gates.ReasonForeignCordon:    func(_ *Namespace, m *fleet.Machine, _ string) []string { return []string{"kubectl uncordon " + m.Name} },
	gates.ReasonRetryLater:       just(func(m *fleet.Machine) string { return "kubectl refit retry " + m.Name }),
	gates.ReasonFailureThreshold: just(func(m *fleet.Machine) string { return "kubectl refit retry machinedeployment/" + m.Pool.Name }),
	gates.ReasonDrainImpossible:  just(func(m *fleet.Machine) string { return "kubectl refit forecast machine/" + m.Name }),
	gates.ReasonAwaitingNext:     just(func(m *fleet.Machine) string { return "kubectl refit next " + m.Name }),
	gates.ReasonDeploymentConflict: func(_ *Namespace, m *fleet.Machine, in string) []string {
		return each(m.Claims, func(pool string) string { return edit + pool + in })
	},
	gates.ReasonNoMachines: func(n *Namespace, _ *fleet.Machine, in string) []string {
		return each(n.Fleet.Lost, func(pool string) string { return edit + pool + in })
	},
	gates.ReasonStrategyNotSupported: just(editPool),
	gates.ReasonWindowInvalid:        just(editPool),
	gates.ReasonCheckInvalid:         just(editPool),
	gates.ReasonNoStandby:            just(editPool),
	gates.ReasonNoCapacity:           func(*Namespace, *fleet.Machine, string) []string { return []string{"kubectl get nodes"} },
}

const edit = "kubectl edit machinedeployment "

func editPool(m *fleet.Machine) string { return edit + m.Pool.Name }

func resume(m *fleet.Machine) string {
	if m.Spec.Paused {
		return "kubectl refit resume machine/" + m.Name
	}
	return "kubectl refit resume " + m.Pool.Name
}

// just is one command in the namespace of the machine.
func just(command func(*fleet.Machine) string) func(*Namespace, *fleet.Machine, string) []string {
	return func(_ *Namespace, m *fleet.Machine, in string) []string { return []string{command(m) + in} }
}

// nudge is what brings a machine back that holds others, or shows how far it is.
func nudge(m *fleet.Machine, in string) string {
	switch {
	case m.Slot != nil:
		return "kubectl refit why " + m.Name + in
	case m.Node == nil || !m.Node.Ready:
		return "kubectl describe node " + m.Name
	case m.Node.ForeignCordon():
		return "kubectl uncordon " + m.Name
	case upgrade.Failed(m.Machine):
		return "kubectl refit retry " + m.Name + in
	}
	return "kubectl refit why " + m.Name + in
}

// mostTyped keeps the list short where very many hold a machine.
const mostTyped = 5

func each[T any](of []T, command func(T) string) []string {
	var out []string
	for _, one := range of[:min(len(of), mostTyped)] {
		if c := command(one); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}
