package fleet

import (
	"fmt"

	"github.com/refit-dev/refit/pkg/window"
)

// hours are how a pool's windows stand, or why they cannot be read.
type hours struct {
	state window.State
	err   error
}

// HasWindows says that the pool has hours in which it may be worked on.
func (p *Pool) HasWindows() bool { return len(p.Rolling().Windows) > 0 }

// Hours is how the windows of the pool stand at the time of the reading. It is found once.
func (p *Pool) Hours() (window.State, error) {
	if p.hours == nil {
		p.hours = &hours{}
		set, err := window.Parse(p.Rolling().Windows)
		if err != nil {
			p.hours.err = fmt.Errorf("spec.strategy.rollingUpdate of MachineDeployment %s: %w", p.Name, err)
		} else {
			p.hours.state = set.At(p.now)
		}
	}
	return p.hours.state, p.hours.err
}
