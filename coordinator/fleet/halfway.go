package fleet

import (
	"slices"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Halfway says that the machine's last operation failed and that something of it stays on
// the host: what runs there is neither what it was nor what it was to be. That a person has
// asked for another try changes nothing of it; only that try does, or one who mends it.
func (m *Machine) Halfway() bool {
	op := m.Status.LastOperation
	if op == nil || op.State != v1alpha1.OperationFailed || op.RolledBack || m.UpToDate() {
		return false
	}
	target := m.targetOf(op.ID)
	if target == nil {
		return true
	}
	wish := v1alpha1.MachineSpec{}
	wish.Roles, wish.Versions = m.Spec.Roles, &target.Versions
	met, _, _ := upgrade.UpToDate(wish, v1alpha1.MachineStatus{Versions: m.Status.Versions})
	return !met || target.OS || target.Certificates
}

// targetOf is what an operation of the past was for; nil where nobody knows any more.
func (m *Machine) targetOf(operation string) *v1alpha1.Target {
	at := slices.IndexFunc(m.Status.History, func(h v1alpha1.HistoryEntry) bool { return h.ID == operation })
	if at < 0 {
		return nil
	}
	return m.Status.History[at].Target
}
