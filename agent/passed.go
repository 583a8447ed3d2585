package agent

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// passing is what is known of the minors that the control plane only passes through on
// its way to spec: the coordinator chooses one release of each for all control planes.
type passing struct {
	running bool
	minors  []string // that known is about
	known   []v1alpha1.PassedMinor
	due     time.Time
}

// lookAhead asks the package sources for the minors in between, when the way has changed and once in a while.
func (a *Agent) lookAhead(ctx context.Context) {
	p := &a.passing
	if p.running || a.machine == nil || a.probing.facts == nil || a.probing.running || a.planned.running || a.work.open() {
		return
	}
	minors := a.minorsBetween()
	if len(minors) == 0 {
		*p = passing{}
		return
	}
	if slices.Equal(minors, p.minors) && a.now().Before(p.due) {
		a.wakeAt(p.due)
		return
	}
	p.running = true
	facts, spec := *a.probing.facts, *a.machine.Spec.DeepCopy()
	a.spawn(ctx, func(ctx context.Context) func() {
		known := planning.Passed(ctx, a.Executor, facts, spec, minors)
		return func() { a.learnPassed(minors, known) }
	})
}

func (a *Agent) learnPassed(minors []string, known []v1alpha1.PassedMinor) {
	p := &a.passing
	p.running, p.minors, p.known = false, minors, known
	wait := a.Timing.Reprobe
	if slices.ContainsFunc(known, func(m v1alpha1.PassedMinor) bool { return len(m.Releases) == 0 }) {
		wait = a.Timing.RetryMax
	}
	p.due = a.now().Add(wait/2 + rand.N(wait/2+1))
}

func (a *Agent) minorsBetween() []string {
	seen, wish := a.probing.facts.Versions().ControlPlane, a.machine.Spec.Versions
	if seen == nil || wish == nil || a.machine.DeletionTimestamp != nil {
		return nil
	}
	return upgrade.MinorsBetween(seen.APIServer, string(wish.ControlPlane))
}

// passed is what to report: until this agent has looked itself, what was known before stays.
func (a *Agent) passed() []v1alpha1.PassedMinor {
	if a.passing.running || a.probing.facts == nil || !a.settled() || a.work.open() {
		return a.machine.Status.PassedMinors
	}
	return a.passing.known
}
