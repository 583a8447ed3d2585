package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/executor/steps"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Config is what an Executor needs.
type Config struct {
	// StateDir is /var/lib/refit.
	StateDir string
	// MachineID of this host; unset, nobody asks whose state it is.
	MachineID string
	Host      steps.Host
	// Journal is the filesystem of the journal; the real one when unset.
	Journal journal.FS
	// Now is the clock of the journal.
	Now func() time.Time
	// Poll is the pause between two looks at something that takes time.
	Poll time.Duration
	// DeadlineCap shortens the deadlines of steps; zero leaves them.
	DeadlineCap time.Duration
	// RollbackDeadline bounds a whole rollback.
	RollbackDeadline time.Duration
	// LockWait is how long another executor is waited for.
	LockWait time.Duration
	// ReleaseUnits is called once, before the first step that needs units to start
	// freely: a resume at boot lets go of the kubelet there.
	ReleaseUnits func()
}

// Executor runs operations, one at a time per host.
type Executor struct {
	Config
	store   *journal.Store
	release sync.Once
}

// ErrStopped says that the work was stopped on request. The journal is open; a resume goes on.
var ErrStopped = errors.New("stopped on request with the journal open: a resume goes on")

// New makes an Executor.
func New(c Config) *Executor {
	if c.Journal == nil {
		c.Journal = journal.Disk{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Poll == 0 {
		c.Poll = 500 * time.Millisecond
	}
	if c.RollbackDeadline == 0 {
		c.RollbackDeadline = 45 * time.Minute
	}
	if c.LockWait == 0 {
		c.LockWait = 10 * time.Second
	}
	return &Executor{Config: c, store: journal.NewStoreFS(c.StateDir, c.Journal)}
}

// Run carries out an operation, or goes on with it, or answers with its recorded
// outcome. The error says why there is no outcome yet; a failed operation is an
// outcome and no error.
func (e *Executor) Run(ctx context.Context, op upgrade.Operation) (journal.Record, error) {
	lock, err := acquire(ctx, e.lockPath(), e.LockWait)
	if err != nil {
		return journal.Record{}, err
	}
	defer lock.release()
	if err := e.own(); err != nil {
		return journal.Record{}, err
	}
	rec, err := e.store.Read(op.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.start(ctx, op)
	case err != nil:
		return rec, err
	case rec.Finished():
		logr.FromContextOrDiscard(ctx).Info("Operation is known", "operation", op.ID, "state", rec.State)
		return rec, e.store.Sweep()
	}
	return e.resume(ctx, op.ID)
}

// Resume goes on with every open operation; at boot nobody else would. A journal that
// cannot be trusted is reported and left alone.
func (e *Executor) Resume(ctx context.Context) ([]journal.Record, error) {
	defer e.release.Do(e.releaseUnits)
	lock, err := acquire(ctx, e.lockPath(), e.LockWait)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	if err := e.own(); err != nil {
		return nil, err
	}
	if err := e.store.Sweep(); err != nil {
		return nil, fmt.Errorf("sweeping finished operations: %w", err)
	}
	open, err := e.store.ListOpen()
	errs := []error{err}
	var ended []journal.Record
	for _, rec := range open {
		rec, err := e.resume(ctx, rec.Operation.ID)
		ended = append(ended, rec)
		errs = append(errs, err)
	}
	return ended, errors.Join(errs...)
}

func (e *Executor) lockPath() string { return filepath.Join(e.StateDir, "lock") }

func (e *Executor) releaseUnits() {
	if e.ReleaseUnits != nil {
		e.ReleaseUnits()
	}
}

// start begins an operation that this host has never seen.
func (e *Executor) start(ctx context.Context, op upgrade.Operation) (journal.Record, error) {
	open, err := e.store.ListOpen()
	if len(open) > 0 {
		return journal.Record{}, fmt.Errorf("starting operation %s: operation %s is open on this host; `refit-executor resume` goes on with it", op.ID, open[0].Operation.ID)
	}
	if err != nil { // another operation's journal is damaged; this plan was made from what the host is now
		logr.FromContextOrDiscard(ctx).Error(err, "An open journal cannot be read")
	}
	ended, err := e.store.Ended()
	if err != nil {
		return journal.Record{}, err
	}
	if slices.Contains(ended, op.ID) {
		return journal.Record{}, fmt.Errorf("starting operation %s: it ran on this host before, and its record is no longer kept", op.ID)
	}
	if err := e.claim(); err != nil {
		return journal.Record{}, err
	}
	boot, err := e.Host.Boot.ID(ctx)
	if err != nil {
		return journal.Record{}, fmt.Errorf("reading the boot id: %w", err)
	}
	j, err := e.store.Create(op, boot, e.Now)
	if err != nil {
		return journal.Record{}, err
	}
	return e.drive(ctx, j)
}

func (e *Executor) resume(ctx context.Context, id string) (journal.Record, error) {
	j, err := e.store.Load(id, e.Now)
	if err != nil {
		return journal.Record{}, err
	}
	return e.drive(ctx, j)
}

// drive brings an open journal to its outcome.
func (e *Executor) drive(ctx context.Context, j *journal.Journal) (journal.Record, error) {
	op := j.Record().Operation
	o := &operation{Executor: e, j: j}
	log := logr.FromContextOrDiscard(ctx).WithValues("operation", op.ID)
	log.Info("Starting operation", "steps", len(op.Plan.Steps), "next", j.Record().Next(), "rollingBack", j.Record().RollingBack)
	err := o.drive(logr.NewContext(ctx, log))
	rec := j.Record()
	if rec.Finished() {
		log.Info("Operation ended", "state", rec.State, "reason", rec.Reason, "message", rec.Message, "rolledBack", rec.RolledBack,
			"duration", rec.EndTime.Sub(rec.StartTime).String())
		e.prune(ctx)
	}
	return rec, err
}
