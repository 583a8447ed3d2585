package metrics

import (
	"time"

	"github.com/refit-dev/refit/api/v1alpha1"
)

var slotStates = []v1alpha1.SlotState{v1alpha1.SlotReserved, v1alpha1.SlotGranted, v1alpha1.SlotAccepted, v1alpha1.SlotVerifying}

func (s *sample) slots() {
	states := map[v1alpha1.SlotState]int{}
	var oldest time.Time
	for i := range s.fleet.ledger.Slots {
		slot := &s.fleet.ledger.Slots[i]
		states[slot.State]++
		if oldest.IsZero() || slot.ReservedTime.Time.Before(oldest) {
			oldest = slot.ReservedTime.Time
		}
	}
	for _, state := range slotStates {
		s.emit(slots, states[state], string(state))
	}
	if !oldest.IsZero() {
		s.c.emit(s.to, oldestSlot, float64(oldest.Unix()), s.namespace)
	}
	s.emit(stopped, one(s.fleet.Stopped))
}
