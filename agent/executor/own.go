package executor

import (
	"fmt"

	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// own says whether the state on this host is its own. That of another machine, on a
// cloned disk, is never gone on with: its journal tells of a host that this one is not.
func (e *Executor) own() error {
	if e.MachineID == "" {
		return nil
	}
	owner, err := store.New(e.StateDir).Owner()
	if err != nil {
		return err
	}
	if owner == "" || owner == e.MachineID {
		return nil
	}
	return &upgrade.Blocked{
		Reason: "StateOfAnotherMachine", Terminal: true,
		Message: fmt.Sprintf("%s is of machine %s, and this is machine %s: the disk was cloned, and no operation of that machine is gone on with here; the agent moves that state aside when it starts, or remove it",
			e.StateDir, owner, e.MachineID),
	}
}

// claim writes down whose state this is, where no agent has.
func (e *Executor) claim() error {
	if e.MachineID == "" {
		return nil
	}
	_, err := store.New(e.StateDir).Claim(e.MachineID)
	return err
}
