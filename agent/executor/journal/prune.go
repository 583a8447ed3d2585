package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// maxEnded bounds the list of ids; the oldest are of assignments that nobody can grant any more.
const maxEnded = 1000

func (s *Store) endedPath() string { return filepath.Join(s.state, "ended") }

// Ended are the ids of operations that ran here and whose journals are gone, the
// oldest first: an id is never run a second time, however long ago it ran.
func (s *Store) Ended() ([]string, error) {
	data, err := s.fs.ReadFile(s.endedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ids of ended operations: %w", err)
	}
	return strings.Fields(string(data)), nil
}

// Prune removes the journals of all but the last operations that have ended. forget
// removes what else is kept of one, before its journal: an accepted operation without
// a journal would be taken for one that has yet to begin. Journals that are open or
// damaged stay.
func (s *Store) Prune(keep int, forget func(id string) error) error {
	records, _ := s.List() // those that cannot be read stay
	records = slices.DeleteFunc(records, func(r Record) bool { return !r.Finished() })
	if len(records) <= keep {
		return nil
	}
	old := records[:len(records)-keep]
	if err := s.noteEnded(old); err != nil {
		return err
	}
	for _, r := range old {
		if err := forget(r.Operation.ID); err != nil {
			return fmt.Errorf("removing what is left of operation %s: %w", r.Operation.ID, err)
		}
		if err := s.fs.Remove(s.Path(r.Operation.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the journal of %s: %w", r.Operation.ID, err)
		}
	}
	return s.fs.SyncDir(s.Dir())
}

// noteEnded writes the ids down before anything is removed: a crash in between notes them twice, which counts once.
func (s *Store) noteEnded(records []Record) error {
	ended, err := s.Ended()
	if err != nil {
		return err
	}
	for _, r := range records {
		if !slices.Contains(ended, r.Operation.ID) {
			ended = append(ended, r.Operation.ID)
		}
	}
	ended = ended[max(0, len(ended)-maxEnded):]
	scratch := s.endedPath() + ".tmp"
	if err := writeSync(s.fs, scratch, []byte(strings.Join(ended, "\n")+"\n"), fileMode); err != nil {
		return fmt.Errorf("writing the ids of ended operations: %w", err)
	}
	if err := s.fs.Rename(scratch, s.endedPath()); err != nil {
		return fmt.Errorf("replacing the ids of ended operations: %w", err)
	}
	return s.fs.SyncDir(s.state)
}
