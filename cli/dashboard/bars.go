package dashboard

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/coordinator/fleet"
)

// Bar is one operation on the timeline. Times are seconds since 1970.
type Bar struct {
	Type   string `json:"type"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Start  int64  `json:"start"`
	// End is 0 while it goes on.
	End      int64     `json:"end,omitempty"`
	Segments []Segment `json:"phases,omitempty"`
}

// Segment is one phase of an operation, in seconds from the bar's start; Until is nil for one that goes on.
type Segment struct {
	Phase string   `json:"phase"`
	From  float64  `json:"from"`
	Until *float64 `json:"until,omitempty"`
}

// Phases as history names them, and those that only show while a machine is at work.
const (
	phaseApply = "Apply"
	phaseReady = "Ready"
	phaseSoak  = "Soak"
)

func (f *Fleet) bars(m *v1alpha1.Machine) []Bar {
	var out []Bar
	if slot, held := f.slots[m.Name]; held && slot.MachineUID == string(m.UID) {
		out = append(out, atWork(m, &slot))
	}
	for i := range m.Status.History {
		if h := &m.Status.History[i]; h.StartTime != nil && h.EndTime != nil {
			out = append(out, ended(h))
		}
	}
	return out
}

// atWork is what a slot says of the way so far.
func atWork(m *v1alpha1.Machine, slot *v1alpha1.Slot) Bar {
	b := Bar{Type: "Drain", State: string(v1alpha1.OperationProcessing), Start: slot.ReservedTime.Unix()}
	if a := m.Status.Assignment; a != nil && a.ID == slot.AssignmentID && !slot.DrainsOnly {
		b.Type = string(a.Type)
	}
	if slot.WaitingTime != nil {
		b.Start = slot.WaitingTime.Unix()
		b.add(fleet.PhaseWait, slot.WaitingTime, &slot.ReservedTime)
	}
	drained := slot.DrainedTime
	if drained == nil {
		drained = slot.GrantedTime // nothing was to be drained
	}
	b.add(fleet.PhaseDrain, &slot.ReservedTime, drained)
	for _, p := range []struct {
		name        string
		from, until *metav1.Time
	}{
		{phaseApply, slot.GrantedTime, slot.AppliedTime},
		{phaseReady, slot.AppliedTime, slot.UncordonedTime},
		{phaseSoak, slot.UncordonedTime, nil},
	} {
		if p.from != nil {
			b.add(p.name, p.from, p.until)
		}
	}
	return b
}

func (b *Bar) add(phase string, from, until *metav1.Time) {
	s := Segment{Phase: phase, From: b.since(from)}
	if until != nil {
		end := b.since(until)
		s.Until = &end
	}
	b.Segments = append(b.Segments, s)
}

func (b *Bar) since(t *metav1.Time) float64 { return max(0, t.Sub(time.Unix(b.Start, 0)).Seconds()) }

// ended lays the durations of history one behind the other; what they leave of the whole is hand-over and soak.
func ended(h *v1alpha1.HistoryEntry) Bar {
	b := Bar{Type: string(h.Type), State: string(h.State), Reason: h.Reason, Start: h.StartTime.Unix(), End: h.EndTime.Unix()}
	at := 0.0
	for _, p := range h.Phases {
		took := max(0, p.Duration.Round(100*time.Millisecond).Seconds())
		if p.Name == fleet.PhaseWait { // it was over when the slot was reserved
			b.Start -= int64(took)
			took = float64(int64(took))
		}
		until := at + took
		b.Segments = append(b.Segments, Segment{Phase: p.Name, From: at, Until: &until})
		at = until
	}
	if whole := float64(b.End - b.Start); whole-at > 1 {
		b.Segments = append(b.Segments, Segment{Phase: phaseSoak, From: at, Until: &whole})
	}
	return b
}
