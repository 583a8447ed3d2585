package fault

import (
	"errors"
	"path/filepath"

	"github.com/refit-dev/refit/test/powercut"
)

// power is the host's disk; nil where this machine can mount none.
var power *powercut.Disk

// diskSize is plenty for one host without a cluster.
const diskSize = 4 << 30

// losePower cuts the power of a host while its executor is held. The gate has to be away
// before the disk can be mounted again: it has the journal's directory open.
func (m *machine) losePower() error {
	defer m.dead.Store(true)
	m.unplugged.Store(true)
	return errors.Join(power.Cut(), m.Kill())
}

// plugIn makes the disk of a host that lost its power ready for the next boot.
func (m *machine) plugIn() error {
	if !m.unplugged.Swap(false) {
		return nil
	}
	m.gate.open()
	return power.Again()
}

func diskOf(state string) (image, at string) {
	return filepath.Join(state, "disk.img"), filepath.Join(state, "fault/hosts/worker-1")
}
