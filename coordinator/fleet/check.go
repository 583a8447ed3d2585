package fleet

import "time"

// CheckState is what is known of a check.
type CheckState string

// States of a check. Only CheckPassed lets a machine go.
const (
	CheckPassed  CheckState = "Passed"
	CheckFailed  CheckState = "Failed"
	CheckUnknown CheckState = "Unknown" // it could not be asked
	CheckInvalid CheckState = "Invalid" // it can never be asked as it is written
)

// CheckOutcome is the answer to a check.
type CheckOutcome struct {
	State   CheckState
	Message string
	// At is before it was asked.
	At time.Time
}

// checkFresh is how long an answer counts.
const checkFresh = 30 * time.Second

// FreshCheck is the answer to the machine's check of that name, if it still counts: it was
// asked a short while ago, and after the last operation of the pool had ended, since a
// check is there to see what that has done.
func (m *Machine) FreshCheck(name string) (CheckOutcome, bool) {
	o, known := m.Checks[name]
	if !known || m.Pool.now.Sub(o.At) > checkFresh || o.At.Before(m.Pool.settledAt()) {
		return CheckOutcome{}, false
	}
	return o, true
}

// settledAt is the first full second after the last operation of the pool ended: times in
// the API have no fractions.
func (p *Pool) settledAt() time.Time {
	if p.settled == nil {
		var last time.Time
		for _, m := range p.Machines {
			for _, h := range m.Status.History {
				if h.EndTime != nil && h.EndTime.After(last) {
					last = h.EndTime.Time
				}
			}
		}
		last = last.Add(time.Second)
		p.settled = &last
	}
	return *p.settled
}
