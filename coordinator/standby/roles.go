package standby

import (
	"github.com/refit-dev/refit/coordinator/fleet"
	"github.com/refit-dev/refit/coordinator/gates"
	"github.com/refit-dev/refit/coordinator/order"
)

// Role is what a machine is to do.
type Role struct {
	// Standby or, if false, serving.
	Standby bool
	// Slot that the decision was made on, and how far it had come.
	Slot string
	// UpToDate says that what runs was known to be what is wanted.
	UpToDate bool
}

// Roles of all machines of the fleet for which that is a question. A machine that is empty,
// and would serve only for the sake of the rollout, waits until it is up to date, since it
// would have to be drained again.
func Roles(f *fleet.Fleet) map[string]Role {
	choices := choices(f)
	out := map[string]Role{}
	for _, m := range f.Machines {
		c, asked := choices[m.Pool.Name]
		if !asked || m.OutOfService() || !m.DeletionTimestamp.IsZero() || m.Lost(f.Now) {
			continue
		}
		role := Role{Standby: c.Now[m.Name], Slot: fleet.SlotMark(m.Slot), UpToDate: m.UpToDate()}
		if empty := m.StandsBy() || emptied(m); empty && c.Always[m.Name] && !m.UpToDate() {
			role.Standby = true
		}
		out[m.Name] = role
	}
	return out
}

// Moves are the serving machines that are to stand by and have to be emptied for it, and
// may be now.
func Moves(f *fleet.Fleet) []*fleet.Machine {
	choices := choices(f)
	var out []*fleet.Machine
	for _, m := range f.Machines {
		if choices[m.Pool.Name].Now[m.Name] && m.Slot == nil && !m.StandsBy() && gates.CheckStandby(f, m) == nil {
			out = append(out, m)
		}
	}
	return out
}

func choices(f *fleet.Fleet) map[string]Choice {
	waiting := map[*fleet.Pool]int{}
	for _, m := range order.Candidates(f) {
		if m.Pool.MaxSurge() > 0 && !m.StandsBy() && fleet.NeedsDrain(m) && gates.WaitsForRoom(f, m) {
			waiting[m.Pool]++
		}
	}
	out := map[string]Choice{}
	for name, p := range f.Pools {
		if Asked(p) {
			out[name] = Choose(p, waiting[p], f.Now)
		}
	}
	return out
}

// Asked says that the machines of the pool are not simply all to serve, or have not been.
func Asked(p *fleet.Pool) bool {
	if p.HasRoles() {
		return true
	}
	for _, m := range p.Machines {
		if m.WishedStandby() || m.StandsBy() {
			return true
		}
	}
	return false
}
