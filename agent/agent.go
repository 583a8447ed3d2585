package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/accept"
	"github.com/refit-dev/refit/agent/planning"
	"github.com/refit-dev/refit/agent/store"
	"github.com/refit-dev/refit/agent/watch"
	"github.com/refit-dev/refit/api/v1alpha1"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// API is this host's Machine in the API server.
type API interface {
	Get(ctx context.Context) (*v1alpha1.Machine, error)
	ApplyStatus(ctx context.Context, status v1alpha1.MachineStatus, resourceVersion string) (*v1alpha1.Machine, error)
}

// Heartbeat is the Lease of a host for which no kubelet speaks.
type Heartbeat interface {
	Renew(ctx context.Context, now time.Time) error
}

// Executor is what the agent asks of its host.
type Executor interface {
	planning.Executor
	// Start starts the work on an accepted operation; one that runs is left alone.
	Start(ctx context.Context, id string) error
	// Running says whether something works on the operation.
	Running(ctx context.Context, id string) (bool, error)
	// Wait returns when nothing works on the operation any more.
	Wait(ctx context.Context, id string) error
	// Release forgets what is left of an ended operation's unit.
	Release(ctx context.Context, id string) error
}

// Deps are the parts an agent is made of.
type Deps struct {
	API      API
	Executor Executor
	Store    *store.Store
	// Hold reads the veto of the host's owner; nil for none.
	Hold func() *upgrade.HoldFacts
	// PackageLock looks who holds the package manager's lock; nil for none.
	PackageLock func() (*upgrade.LockFacts, error)
	// LockReleased closes its channel once a holder has given the lock up; nil for none.
	LockReleased func(ctx context.Context, seen upgrade.LockFacts) (<-chan struct{}, error)
	// Heartbeat is renewed where the host has no Node; nil for none.
	Heartbeat Heartbeat
	// Files sends the path of each watched file that changed; nil for none.
	Files <-chan string
	// Reported is told how the API server has answered each report; nil for nobody.
	Reported func(err error)
	// UnitEvents sends the name of a unit that started, stopped or got another process; nil for none.
	UnitEvents <-chan string
	// MachineID and BootID of this host.
	MachineID, BootID string
	Timing            Timing
}

// Timing are the agent's intervals; zero values stand for the defaults.
type Timing struct {
	// Reprobe is how often an undisturbed host is looked at, with jitter.
	Reprobe time.Duration
	// Settle is how long after a change of the package database the host is looked at.
	Settle time.Duration
	// Security is how often security updates are looked for where spec asks for them, with
	// jitter; the first look comes within SecuritySpread, so that a pool does not ask at once.
	Security, SecuritySpread time.Duration
	// Beat is how often a host without a Node says that it is there.
	Beat time.Duration
	// Retry is the first delay after something failed; it doubles up to RetryMax.
	Retry, RetryMax time.Duration
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&t.Reprobe, time.Hour)
	set(&t.Settle, 5*time.Second)
	set(&t.Security, 24*time.Hour)
	set(&t.SecuritySpread, time.Hour)
	set(&t.Beat, 40*time.Second)
	set(&t.Retry, 5*time.Second)
	set(&t.RetryMax, 10*time.Minute)
	return t
}

// Agent is one host's agent. All fields below the channels belong to the goroutine of Run.
type Agent struct {
	Deps
	planner  planning.Planner
	acceptor accept.Acceptor

	events  chan watch.Event
	results chan func()
	jobs    sync.WaitGroup
	busy    atomic.Bool

	machine *v1alpha1.Machine
	epoch   int64
	said    map[string]string

	probing   probing
	passing   passing
	planned   planned
	security  security
	work      work
	lock      lock
	reporting reporting
	beating   beating
	wake      time.Time
}

// New makes an agent.
func New(deps Deps) *Agent {
	deps.Timing = deps.Timing.withDefaults()
	a := &Agent{
		Deps:     deps,
		planner:  planning.Planner{Executor: deps.Executor, Records: deps.Store},
		acceptor: accept.Acceptor{Records: deps.Store, API: deps.API},
		events:   make(chan watch.Event),
		results:  make(chan func()),
		said:     map[string]string{},
	}
	a.probing.backoff = a.newBackoff()
	a.probing.unclear = watch.Backoff{First: a.Timing.Settle, Max: a.Timing.RetryMax}
	a.planned.backoff = a.newBackoff()
	a.work.backoff = a.newBackoff()
	a.security.backoff = watch.Backoff{First: securityRetry, Max: securityRetryMax}
	a.lock.backoff = watch.Backoff{First: a.Timing.Retry, Max: min(lockLook, a.Timing.RetryMax)}
	a.reporting.backoff = watch.Backoff{First: min(time.Second, a.Timing.Retry), Max: time.Minute}
	return a
}

func (a *Agent) newBackoff() watch.Backoff {
	return watch.Backoff{First: a.Timing.Retry, Max: a.Timing.RetryMax}
}

// Events is where a watcher sends what it sees.
func (a *Agent) Events() chan<- watch.Event { return a.events }

// Busy says that the host is at work or waits for a grant. Any goroutine may ask.
func (a *Agent) Busy() bool { return a.busy.Load() }

// Run works until the context ends. What it started on the host goes on without it.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.claim(ctx); err != nil {
		return err
	}
	jobs, stop := context.WithCancel(ctx)
	defer a.jobs.Wait()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for a.next(ctx, timer.C) {
		a.wake = time.Time{}
		a.advance(jobs)
		timer.Reset(a.untilWake())
	}
	return nil
}

// next takes in one event; it says false once the agent is to stop: nothing is begun from then on.
func (a *Agent) next(ctx context.Context, timer <-chan time.Time) bool {
	apply := func() {}
	select {
	case <-ctx.Done():
	case e := <-a.events:
		apply = func() { a.observe(ctx, e) }
	case apply = <-a.results:
	case path := <-a.Files:
		apply = func() { a.noteFile(path) }
	case _, open := <-a.UnitEvents:
		if apply = a.noteUnit; !open {
			a.UnitEvents, apply = nil, func() {}
		}
	case <-a.lock.released:
		apply = a.lock.stopWatching // it is looked at, and watched again if another holds it now
	case <-timer:
	}
	if ctx.Err() != nil {
		return false
	}
	apply()
	return true
}

// claim binds the state directory to this machine before anything in it is believed.
func (a *Agent) claim(ctx context.Context) error {
	moved, err := a.Store.Claim(a.MachineID)
	if moved != "" {
		logr.FromContextOrDiscard(ctx).Info("The state on this host was of another machine; it is not followed", "movedTo", moved)
	}
	return errors.Join(err, a.Store.MakeDirs())
}

func (a *Agent) advance(ctx context.Context) {
	for _, step := range []func(context.Context){
		a.readDisk, a.probe, a.lookAhead, a.lookForUpdates, a.plan, a.lookAtLock, a.decide, a.follow, a.report, a.beat,
	} {
		step(ctx)
	}
	a.busy.Store(a.atWork())
}

// atWork says that somebody waits for this host: it comes back fast when the API server does.
func (a *Agent) atWork() bool {
	return a.work.open() || a.planned.running || a.unreported()
}

// spawn runs something that takes time, and applies its result in the agent's own goroutine.
func (a *Agent) spawn(ctx context.Context, job func(ctx context.Context) (apply func())) {
	a.jobs.Add(1)
	go func() {
		defer a.jobs.Done()
		apply := job(ctx)
		select {
		case a.results <- apply:
		case <-ctx.Done():
		}
	}()
}

// wakeAt makes sure that advance runs again at that time.
func (a *Agent) wakeAt(t time.Time) {
	if a.wake.IsZero() || t.Before(a.wake) {
		a.wake = t
	}
}

func (a *Agent) untilWake() time.Duration {
	if a.wake.IsZero() {
		return a.Timing.Reprobe
	}
	return max(0, time.Until(a.wake))
}

// sayOnce logs a state when it changes, not each time it is looked at.
func (a *Agent) sayOnce(ctx context.Context, topic, message string, keysAndValues ...any) {
	if a.said[topic] == message {
		return
	}
	a.said[topic] = message
	logr.FromContextOrDiscard(ctx).Info(message, keysAndValues...)
}
