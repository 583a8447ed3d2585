package agent

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/report"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// A repository that is away is asked again after these pauses: it is asked by every host of a pool.
const (
	securityRetry    = 10 * time.Minute
	securityRetryMax = 6 * time.Hour
)

// security is what is known of the distribution's security updates, and when they are looked
// for next: once a day, and whenever a plan is made. Only where spec asks for them.
type security struct {
	loaded  bool
	running bool
	known   *store.Security
	failure error
	due     time.Time
	backoff watch.Backoff
}

// names are the packages to look at, so that an update that is installed by now is known to be.
func (s *security) names(spec v1alpha1.MachineSpec) []string {
	if s.known == nil || !upgrade.WantsSecurityUpdates(spec) {
		return nil
	}
	var out []string
	for _, c := range s.known.Updates {
		if c.From != "" {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lookForUpdates asks the repositories when that is due. It fetches indexes into Refit's own
// state, and disturbs nothing.
func (a *Agent) lookForUpdates(ctx context.Context) {
	s := &a.security
	if a.machine == nil || !upgrade.WantsSecurityUpdates(a.machine.Spec) {
		s.due = time.Time{} // whoever asks for them later waits for a place of his own in the spread
		return
	}
	a.loadUpdates(ctx)
	if s.running || a.planned.running || a.work.open() || a.probing.facts == nil {
		return
	}
	if s.due.IsZero() {
		s.due = a.now().Add(rand.N(a.Timing.SecuritySpread))
		if s.known != nil {
			s.due = latest(s.due, a.afterLook(s.known.CheckTime))
		}
	}
	if a.now().Before(s.due) {
		a.wakeAt(s.due)
		return
	}
	s.running = true
	request := upgrade.SecurityRequest(a.machine.Spec)
	a.spawn(ctx, func(ctx context.Context) func() {
		found, err := a.Executor.Candidates(ctx, request)
		return func() {
			s.running = false
			if err != nil {
				s.failure = err
				s.due = a.now().Add(s.backoff.Next(err))
				a.sayOnce(ctx, "security", "Looking for security updates failed, trying again", "reason", err.Error(), "next", s.due)
				return
			}
			a.learnUpdates(ctx, found)
		}
	})
}

// learnUpdates takes in what was found, by a look or by a plan.
func (a *Agent) learnUpdates(ctx context.Context, found []upgrade.Candidate) {
	s := &a.security
	s.known, s.failure = &store.Security{CheckTime: a.now(), Updates: found}, nil
	s.backoff.Reset()
	s.due = a.afterLook(s.known.CheckTime)
	if err := a.Store.SaveSecurity(*s.known); err != nil {
		a.sayOnce(ctx, "security", "What was found of security updates cannot be kept", "reason", err.Error())
	}
	logr.FromContextOrDiscard(ctx).Info("Looked for security updates", "found", len(found), "next", s.due)
}

func (a *Agent) afterLook(at time.Time) time.Time {
	return at.Add(a.Timing.Security*3/4 + rand.N(a.Timing.Security/2+1))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// loadUpdates reads once what an earlier agent found.
func (a *Agent) loadUpdates(context.Context) {
	s := &a.security
	if s.loaded {
		return
	}
	s.loaded = true
	if known, err := a.Store.Security(); err == nil && s.known == nil {
		s.known = &known
	}
}

func (a *Agent) securityReport() *report.Security {
	s := &a.security
	if s.known == nil && s.failure == nil {
		return nil
	}
	out := &report.Security{Failure: s.failure}
	if s.known != nil {
		out.Known, out.Updates = true, s.known.Updates
	}
	return out
}
