package agent

import "time"

// Units are those whose restart changes what runs on a host.
var Units = []string{"kubelet.service", "containerd.service", "crio.service", "etcd.service"}

// calm is how long nothing restarts until a unit counts as calm again.
const calm = 10 * time.Minute

// unitChanges bounds how often the host is looked at because units restart: the first
// time at once, and ever more rarely for one that fails and is started again for ever.
type unitChanges struct {
	last  time.Time     // when a unit changed
	pause time.Duration // between two looks
}

// noteUnit takes in that a unit has started, stopped or got another process. What the
// executor restarts is looked at when its operation has ended.
func (a *Agent) noteUnit() {
	if a.work.open() {
		return
	}
	p, now := &a.probing, a.now()
	if now.Sub(p.units.last) > calm {
		p.units.pause = a.Timing.Settle
	}
	p.units.last = now
	if p.running || a.planned.running {
		p.missed = true // the look that is under way may have come before the change
		return
	}
	a.lookAgain()
}

// lookAgain plans the next look: when the units have settled, and no sooner than the pause after the last one.
func (a *Agent) lookAgain() {
	p := &a.probing
	at := a.now().Add(a.Timing.Settle)
	if next := p.looked.Add(p.units.pause); at.Before(next) {
		at = next
	}
	if p.facts == nil || !at.Before(p.due) {
		return
	}
	p.due = at
	p.units.pause = min(2*p.units.pause, a.Timing.RetryMax)
}
