package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/refit-dev/refit/pkg/upgrade"
)

// Journal is one operation that is being written. Every method returns only after
// the change is on disk; when it fails, the record in memory is as before, and the
// caller stops before its effect.
type Journal struct {
	store *Store
	now   func() time.Time
	rec   Record
}

// ErrExists says that the operation has a journal: it is never begun a second time.
var ErrExists = errors.New("the operation has a journal already")

// Create records the intent to run an operation. The marker comes first: a crash
// after it leaves a marker without a record, which no resume follows.
func (s *Store) Create(op upgrade.Operation, bootID string, now func() time.Time) (*Journal, error) {
	if !ValidID(op.ID) {
		return nil, fmt.Errorf("creating a journal: %q is not an operation id", op.ID)
	}
	// The directories as well: what is synced in one whose own name is lost is lost with it.
	for _, dir := range []string{s.state, s.Dir(), s.openDir()} {
		if err := mkdirSync(s.fs, dir, dirMode); err != nil {
			return nil, fmt.Errorf("creating %s: %w", dir, err)
		}
	}
	if _, err := s.fs.ReadFile(s.Path(op.ID)); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("creating the journal of %s: %w", op.ID, ErrExists), err)
	}
	if err := writeSync(s.fs, s.marker(op.ID), nil, fileMode); err != nil {
		return nil, fmt.Errorf("marking %s as open: %w", op.ID, err)
	}
	if err := s.fs.SyncDir(s.openDir()); err != nil {
		return nil, fmt.Errorf("marking %s as open: %w", op.ID, err)
	}
	j := &Journal{store: s, now: now}
	return j, j.update(func(r *Record) {
		*r = Record{Operation: op, BootID: bootID, StartTime: now(), State: Open}
		for _, step := range op.Plan.Steps {
			r.Steps = append(r.Steps, StepRecord{Kind: step.Kind, State: StepPending})
		}
	})
}

// Load opens the journal of an operation that was begun before.
func (s *Store) Load(id string, now func() time.Time) (*Journal, error) {
	r, err := s.Read(id)
	if err != nil {
		return nil, err
	}
	return &Journal{store: s, now: now, rec: r}, nil
}

// Record is what is on disk now. The caller does not change it.
func (j *Journal) Record() Record { return j.rec }

// update changes a copy, writes it, and keeps it only when it is on disk.
func (j *Journal) update(change func(*Record)) error {
	r := j.rec
	r.Steps = append([]StepRecord(nil), j.rec.Steps...)
	r.Rollback = append([]StepRecord(nil), j.rec.Rollback...)
	change(&r)
	if err := j.store.write(r); err != nil {
		return err
	}
	j.rec = r
	return nil
}

// SetBaseline records what ran before the first step.
func (j *Journal) SetBaseline(b Baseline) error {
	return j.update(func(r *Record) { r.Baseline = &b })
}

// Undo is what a step captured before its effect.
type Undo struct {
	Steps []upgrade.Step
	// None says why something cannot be undone; "" when all of it can.
	None string
}

// Begin records the intent to run a step. What undoes it is captured at the first
// attempt only: at a later one the host may hold half of the effect.
func (j *Journal) Begin(i int, bootID string, undo Undo) error {
	return j.update(func(r *Record) {
		s := &r.Steps[i]
		if s.Start == nil {
			s.Undo, s.NoUndo = undo.Steps, undo.None
		}
		begin(s, j.now(), bootID)
	})
}

// The first boot and time stay, even when the attempt was taken back: what began before
// a reboot did not begin after it.
func begin(s *StepRecord, now time.Time, bootID string) {
	if s.Start == nil {
		s.BootID, s.Start = bootID, &now
	}
	s.State, s.Message = StepBegun, ""
	s.Attempts++
}

// Note records what the step that runs waits for, for people; "" when it goes on.
func (j *Journal) Note(i int, what string) error {
	return j.update(func(r *Record) { r.current(i).Message = what })
}

// Interrupt takes back the count of an attempt that was cut short on request.
func (j *Journal) Interrupt(i int) error {
	return j.update(func(r *Record) { r.current(i).Attempts-- })
}

func (r *Record) current(i int) *StepRecord {
	if r.RollingBack {
		return &r.Rollback[i]
	}
	return &r.Steps[i]
}

// Done records that the effect of a step was observed.
func (j *Journal) Done(i int, message string) error {
	return j.update(func(r *Record) { end(&r.Steps[i], StepDone, j.now(), message) })
}

func end(s *StepRecord, state StepState, now time.Time, message string) {
	s.State, s.End, s.Message = state, &now, message
}

// Cause is why the direction turns.
type Cause struct {
	// Step that failed; "" for a refusal before the first.
	Step            upgrade.StepKind
	Reason, Message string
}

// Turn records that step i failed and what will be undone, in one write: from then
// on the only way is back. An empty rollback is legal: nothing was changed.
func (j *Journal) Turn(i int, cause Cause, rollback []upgrade.Step, notUndone []string) error {
	return j.update(func(r *Record) {
		if i < len(r.Steps) {
			end(&r.Steps[i], StepFailed, j.now(), cause.Message)
		}
		r.FailedStep, r.Reason, r.Message = cause.Step, cause.Reason, cause.Message
		r.RollingBack, r.NotUndone = true, notUndone
		r.Rollback = make([]StepRecord, 0, len(rollback))
		for _, step := range rollback {
			r.Rollback = append(r.Rollback, StepRecord{Kind: step.Kind, State: StepPending, Step: &step})
		}
	})
}

// BeginRollback records the intent to run a rollback step.
func (j *Journal) BeginRollback(i int, bootID string) error {
	return j.update(func(r *Record) { begin(&r.Rollback[i], j.now(), bootID) })
}

// DoneRollback records that a rollback step was observed to have worked.
func (j *Journal) DoneRollback(i int, message string) error {
	return j.update(func(r *Record) { end(&r.Rollback[i], StepDone, j.now(), message) })
}

// FailRollback records that a rollback step did not work; the others still run.
func (j *Journal) FailRollback(i int, message string) error {
	return j.update(func(r *Record) {
		end(&r.Rollback[i], StepFailed, j.now(), message)
		r.NotUndone = append(append([]string(nil), r.NotUndone...), message)
	})
}

// Succeed records the outcome and takes the marker away.
func (j *Journal) Succeed() error {
	return j.finish(func(r *Record) { r.State, r.Reason, r.Message = Successful, "", "" })
}

// Fail records the outcome and takes the marker away.
func (j *Journal) Fail(reason, message string, rolledBack bool) error {
	return j.finish(func(r *Record) {
		r.State, r.Reason, r.Message, r.RolledBack = Failed, reason, message, rolledBack
		for i := range r.Steps {
			if s := &r.Steps[i]; rolledBack && len(s.Undo) > 0 {
				s.State = StepUndone
			}
		}
	})
}

func (j *Journal) finish(outcome func(*Record)) error {
	err := j.update(func(r *Record) {
		now := j.now()
		r.EndTime = &now
		outcome(r)
	})
	if err != nil {
		return err
	}
	return j.store.removeMarker(j.rec.Operation.ID)
}
