package agent

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// secondLook is how long after a change of the package database the host is looked at
// once more: who installs a new kubelet restarts it a little later.
const secondLook = time.Minute

// troubledLook is how soon a host is looked at again whose etcd is not well: others wait for what it says.
const troubledLook = time.Minute

// probing is what is known of the host, and when to look again.
type probing struct {
	running bool
	facts   *upgrade.Facts
	// settled is the ended operation that the facts are younger than.
	settled string
	// packages that the facts say something of.
	packages []string
	due      time.Time
	again    time.Time // a second look after a change of the package database
	looked   time.Time // when the facts came
	missed   bool      // a unit changed during the look that is under way
	units    unitChanges
	kept     upgrade.Kept // what Refit left on the host before
	rebooted []string     // for what it was rebooted since it last asked for no reboot
	failure  error
	backoff  watch.Backoff
	unclear  watch.Backoff // looks that left something unknown
	// answers is set when a lost operation waits for facts that are younger than its discovery.
	answers string
}

// probe looks at the host when nothing is known yet, when something may have changed,
// and once in a while. Not while an operation runs: what is seen then is neither the
// host before nor the host after.
func (a *Agent) probe(ctx context.Context) {
	p := &a.probing
	if p.running || a.passing.running || a.planned.running || a.work.open() {
		return
	}
	if p.facts != nil && p.settled == a.work.endedID() && p.answers == a.work.lost && a.knowsPackages() && a.now().Before(p.due) {
		a.wakeAt(p.due)
		return
	}
	if p.failure != nil && a.now().Before(p.due) {
		a.wakeAt(p.due)
		return
	}
	p.running = true
	settles, answers, packages := a.work.endedID(), a.work.lost, a.wantedPackages()
	a.spawn(ctx, func(ctx context.Context) func() {
		facts, err := a.Executor.Facts(ctx, packages)
		return func() {
			p.running = false
			if err != nil {
				a.probeFailed(ctx, err)
				return
			}
			p.settled, p.answers = settles, answers
			a.learn(facts, packages)
		}
	})
}

// learn takes in facts, from a probe or from planning.
func (a *Agent) learn(facts upgrade.Facts, packages []string) {
	p := &a.probing
	p.facts, p.packages, p.failure, p.looked = &facts, packages, nil, a.now()
	p.backoff.Reset()
	if a.Store != nil {
		p.kept = a.Store.Kept()
		p.rebooted = a.settleReboot(facts)
	}
	p.due = a.now().Add(a.Timing.Reprobe/2 + rand.N(a.Timing.Reprobe/2+1))
	if p.again.After(a.now()) {
		p.due = p.again
	}
	a.lookCloser()
	if soon := a.now().Add(troubledLook); facts.EtcdInDoubt() && soon.Before(p.due) {
		p.due = soon
	}
	if p.missed {
		p.missed = false
		a.lookAgain()
	}
}

// lookCloser brings the next look forward while something is unknown: soon, and ever more rarely for what stays so.
func (a *Agent) lookCloser() {
	p := &a.probing
	if !unclear(p.facts) {
		p.unclear.Reset()
		return
	}
	if at := a.now().Add(p.unclear.Next(nil)); at.Before(p.due) {
		p.due = at
	}
}

func (a *Agent) probeFailed(ctx context.Context, err error) {
	p := &a.probing
	p.failure = err
	p.due = a.now().Add(p.backoff.Next(err))
	a.sayOnce(ctx, "probe", "Probing the host failed, trying again", "reason", err.Error(), "next", p.due)
}

func (a *Agent) wantedPackages() []string {
	if a.machine == nil {
		return nil
	}
	return append(planning.PackageNames(a.machine.Spec), a.security.names(a.machine.Spec)...)
}

// knowsPackages says that the facts cover the packages in spec.
func (a *Agent) knowsPackages() bool { return slices.Equal(a.probing.packages, a.wantedPackages()) }

// noteFile takes in a change of a watched file. The journal and the hold need nothing
// here: every advance reads them anew.
func (a *Agent) noteFile(path string) {
	if a.work.open() {
		return // what the executor changes is looked at when its operation has ended
	}
	if ManagedFile(path) || path == everything {
		a.noteUnit() // with the same patience for one that is written for ever
		return
	}
	if !PackageDatabase(path) {
		return
	}
	p := &a.probing
	p.again = a.now().Add(secondLook)
	if at := a.now().Add(a.Timing.Settle); p.facts != nil && at.Before(p.due) {
		p.due = at
	}
}

func (a *Agent) now() time.Time { return time.Now() }
