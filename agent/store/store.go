// Package store holds what the agent must not forget: the frozen plan of an
// assignment, the intent to accept a grant, and the operations that were accepted.
//
//	<state>/machine-id              whose state this is
//	<state>/security.json           what was found of security updates, and when
//	<state>/ended                   ids of operations whose journals are gone
//	<state>/plans/<assignment>.json the frozen plan
//	<state>/accepting/<grant>.json  written before the acceptance is sent
//	<state>/operations/<grant>.json written once it is known to have arrived; the executor's input
//
// Every write is durable when it returns, and replaces whole files.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// DefaultDir is the state directory of a host.
const DefaultDir = "/var/lib/refit"

// Store is a state directory.
type Store struct{ dir string }

// New opens a state directory; it is made when something is written.
func New(dir string) *Store { return &Store{dir: dir} }

// Dir is the state directory.
func (s *Store) Dir() string { return s.dir }

// FrozenPlan is a plan that was staged. It changes no more: a restart does not plan again.
type FrozenPlan struct {
	Generation    int64         `json:"generation"`
	Plan          upgrade.Plan  `json:"plan"`
	StageDuration time.Duration `json:"stageDuration,omitempty"`
}

// Intent is written before an acceptance is sent. With it a restarted agent can tell
// an acceptance of its own, whose operation has not begun, from one whose records are lost.
type Intent struct {
	BootID    string            `json:"bootID"`
	Operation upgrade.Operation `json:"operation"`
}

// SavePlan freezes the plan of an assignment and forgets those of earlier ones.
func (s *Store) SavePlan(plan FrozenPlan) error {
	if err := s.write("plans", plan.Plan.AssignmentID, plan); err != nil {
		return err
	}
	return s.removeOthers("plans", plan.Plan.AssignmentID)
}

// Plan is the frozen plan of an assignment; fs.ErrNotExist when there is none.
func (s *Store) Plan(assignmentID string) (FrozenPlan, error) {
	var plan FrozenPlan
	err := s.read("plans", assignmentID, &plan)
	return plan, err
}

// DropPlan forgets the plan of an assignment: it is to be made anew.
func (s *Store) DropPlan(assignmentID string) error { return s.remove("plans", assignmentID) }

// SaveIntent records that the acceptance of a grant is about to be sent.
func (s *Store) SaveIntent(intent Intent) error {
	return s.write("accepting", intent.Operation.ID, intent)
}

// Intent is the intent to accept a grant; fs.ErrNotExist when there is none.
func (s *Store) Intent(grantID string) (Intent, error) {
	var intent Intent
	err := s.read("accepting", grantID, &intent)
	return intent, err
}

// DropIntent forgets the intent to accept a grant.
func (s *Store) DropIntent(grantID string) error { return s.remove("accepting", grantID) }

// SaveOperation hands an accepted operation to the executor. The intent goes last: a
// crash between the two leaves both, and the operation is what counts.
func (s *Store) SaveOperation(op upgrade.Operation) error {
	if err := s.write("operations", op.ID, op); err != nil {
		return err
	}
	return s.DropIntent(op.ID)
}

// Operation is an accepted operation; fs.ErrNotExist when there is none.
func (s *Store) Operation(grantID string) (upgrade.Operation, error) {
	var op upgrade.Operation
	err := s.read("operations", grantID, &op)
	return op, err
}

// DropOperation takes back an operation that nothing has begun.
func (s *Store) DropOperation(grantID string) error { return s.remove("operations", grantID) }

// Operations are the operations of this host whose journals are kept, oldest first; what
// could not be read is an error beside the others.
func (s *Store) Operations() ([]journal.Record, error) { return journal.NewStore(s.dir).List() }

// Journal is the record of an operation; fs.ErrNotExist when it has not begun.
func (s *Store) Journal(grantID string) (journal.Record, error) {
	return journal.Read(s.dir, grantID)
}

// Open are the operations of this host that have no outcome yet, oldest first.
func (s *Store) Open() ([]journal.Record, error) { return journal.ListOpen(s.dir) }

// JournalDir is the directory to watch for progress.
func (s *Store) JournalDir() string { return journal.NewStore(s.dir).Dir() }

// Known says whether a grant was ever run, or is about to be, on this host. An error means that nobody can say.
func (s *Store) Known(grantID string) (bool, error) {
	for _, dir := range []string{"operations", "journal"} {
		path, err := s.path(dir, grantID)
		if err != nil {
			return false, err
		}
		_, err = os.Stat(path)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("looking for operation %s: %w", grantID, err)
		}
	}
	ended, err := journal.NewStore(s.dir).Ended()
	return slices.Contains(ended, grantID), err
}

// MakeDirs makes the directories that are watched, so that they can be before anything is in them.
func (s *Store) MakeDirs() error {
	if err := files.PrivateDir(s.dir); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	for _, dir := range []string{"plans", "accepting", "operations", "journal"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), dirMode); err != nil {
			return fmt.Errorf("making the state directory: %w", err)
		}
	}
	return nil
}

func (s *Store) write(kind, id string, v any) error {
	path, err := s.path(kind, id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	if err := files.SyncDir(s.dir); err != nil { // the name of the directory is to last as well
		return fmt.Errorf("making the state directory: %w", err)
	}
	return files.WriteAtomic(path, append(text, '\n'), fileMode)
}

func (s *Store) read(kind, id string, v any) error {
	path, err := s.path(kind, id)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading state: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("reading %s: %w: it is damaged; move it away and look at the host", path, err)
	}
	return nil
}

func (s *Store) remove(kind, id string) error {
	path, err := s.path(kind, id)
	if err != nil {
		return err
	}
	return files.Remove(path)
}

func (s *Store) removeOthers(kind, keep string) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, kind))
	if err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	var errs []error
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), ".json"); ok && id != keep {
			errs = append(errs, s.remove(kind, id))
		}
	}
	return errors.Join(errs...)
}

// path refuses an id that is no plain word: it comes from the API and becomes a file name.
func (s *Store) path(kind, id string) (string, error) {
	if !journal.ValidID(id) {
		return "", fmt.Errorf("%q cannot be an id: letters, digits, dots and dashes only, at most 128", id)
	}
	return filepath.Join(s.dir, kind, id+".json"), nil
}

// Unbegun are the accepted operations whose executor has written no journal yet.
func (s *Store) Unbegun() ([]upgrade.Operation, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "operations"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing operations: %w", err)
	}
	ended, err := journal.NewStore(s.dir).Ended()
	if err != nil {
		return nil, err // one that ended would pass for one that has yet to begin
	}
	var out []upgrade.Operation
	var errs []error
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !journal.ValidID(id) || slices.Contains(ended, id) {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.JournalDir(), entry.Name())); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		op, err := s.Operation(id)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, op)
	}
	return out, errors.Join(errs...)
}
