package fleet

import (
	"fmt"
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StandsBy says that the machine is kept empty, or was until its slot and has not been put
// to work in it: nobody misses it.
func (m *Machine) StandsBy() bool {
	if m.Slot != nil && m.Slot.StoodBy && m.Slot.UncordonedTime == nil {
		return true
	}
	return m.Node.StandsBy() && (m.Slot == nil || m.Slot.UncordonedTime != nil)
}

// StandsBy says that the node is kept empty in our name.
func (n *Node) StandsBy() bool {
	return n != nil && n.Unschedulable && n.CordonedBy == v1alpha1.CordonStandby
}

// TakenToWork says that somebody has made a standby's node schedulable: it serves, and
// nobody is drained to make up for it. It ends when the marker is taken off.
func (m *Machine) TakenToWork() bool {
	return m.Node != nil && !m.Node.Unschedulable && m.Node.CordonedBy == v1alpha1.CordonStandby
}

// WishedStandby says that the machine's own spec wants it to stand by.
func (m *Machine) WishedStandby() bool { return m.Spec.Availability == v1alpha1.AvailabilityStandby }

// Serves says that pods may run on the machine and come to it.
func (m *Machine) Serves() bool {
	return !m.OutOfService() && !m.StandsBy() && m.Unavailable() == ""
}

// Silence is how long a host may be out of sight before it counts as lost: its operation as
// failed, its topology domain as finished, its place as one for a standby.
const Silence = 5 * time.Minute

// Lost says that the machine does not serve, and that no slot of ours is going to end that.
func (m *Machine) Lost(now time.Time) bool {
	switch {
	case m.Slot != nil || m.Down() == "":
		return false
	case m.Node != nil && !m.Node.Ready:
		return now.Sub(m.Node.NotReadySince.Time) >= Silence
	}
	return true
}

// Unusable says why a standby cannot be put to work, now or soon, without a person; "" when it can.
func (m *Machine) Unusable() string {
	switch why := m.Down(); {
	case m.Slot != nil && !upgrade.Failed(m.Machine):
		return "" // away for its upgrade
	case why != "":
		return why
	case !m.DeletionTimestamp.IsZero():
		return "being deleted"
	case m.UpToDate():
		return ""
	case m.Spec.Paused:
		return "paused before its upgrade"
	case m.waitsForAPerson():
		return "its upgrade waits for a person"
	}
	return ""
}

// Serving is how many machines of the pool serve now.
func (p *Pool) Serving() int { return p.Tally().fresh().serving }

// MaxSurge is how many standby machines may be put to work for a rollout; a percentage is
// rounded down to at least one, except 0%.
func (p *Pool) MaxSurge() int {
	v := p.Rolling().MaxSurge
	if v == nil || *v == intstr.FromString("0%") {
		return 0
	}
	return Scaled(*v, p.Size(), defaultMinimumOfPercentage)
}

// HasRoles says that who serves in the pool is not simply everyone.
func (p *Pool) HasRoles() bool {
	return p.MaxSurge() > 0 || (p.Deployment != nil && p.Deployment.Spec.Replicas != nil)
}

// SlotMark names a slot and how far it has come, so that what was decided on an earlier
// reading of it is known for that; "" without a slot.
func SlotMark(s *v1alpha1.Slot) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", s.GrantID, s.State)
}

// AtWork says that the host of a machine in service is being drained or worked on, and
// that it is missed meanwhile. It ends with the operation.
func (m *Machine) AtWork() bool {
	s := m.Slot
	return s != nil && !s.StoodBy && !s.DrainsOnly && Disrupts(s.Disruption) && s.State != v1alpha1.SlotVerifying && !upgrade.Failed(m.Machine)
}
