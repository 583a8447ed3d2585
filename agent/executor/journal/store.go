package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// An id becomes a file name and a unit name, so it is one word without tricks.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidID says whether an id may name an operation.
func ValidID(id string) bool { return validID.MatchString(id) && !strings.Contains(id, "..") }

// Store holds the journals of a host.
type Store struct {
	state string
	fs    FS
}

// NewStore opens the journals below a state directory such as /var/lib/refit.
func NewStore(stateDir string) *Store { return NewStoreFS(stateDir, Disk{}) }

// NewStoreFS does so on a given filesystem.
func NewStoreFS(stateDir string, fsys FS) *Store { return &Store{state: stateDir, fs: fsys} }

// Read is the record of one operation; fs.ErrNotExist when there is none.
func Read(stateDir, id string) (Record, error) { return NewStore(stateDir).Read(id) }

// ListOpen are the operations that have no outcome yet, oldest first.
func ListOpen(stateDir string) ([]Record, error) { return NewStore(stateDir).ListOpen() }

// Dir is where the records are: the directory to watch.
func (s *Store) Dir() string { return filepath.Join(s.state, "journal") }

// Path is the file of one operation.
func (s *Store) Path(id string) string { return filepath.Join(s.Dir(), id+".json") }

func (s *Store) openDir() string          { return filepath.Join(s.state, "open") }
func (s *Store) marker(id string) string  { return filepath.Join(s.openDir(), id) }
func (s *Store) scratch(id string) string { return filepath.Join(s.Dir(), "."+id+".tmp") }

// Read is the record of one operation; fs.ErrNotExist when there is none.
func (s *Store) Read(id string) (Record, error) {
	if !ValidID(id) {
		return Record{}, fmt.Errorf("reading a journal: %q is not an operation id", id)
	}
	data, err := s.fs.ReadFile(s.Path(id))
	if err != nil {
		return Record{}, fmt.Errorf("reading the journal of %s: %w", id, err)
	}
	r, err := Decode(s.Path(id), data)
	if err == nil && r.Operation.ID != id {
		err = &CorruptError{s.Path(id), "it is of operation " + r.Operation.ID}
	}
	return r, err
}

// List are all records that can be read, oldest first. The error joins what could
// not: the good ones are returned all the same.
func (s *Store) List() ([]Record, error) {
	names, err := s.fs.ReadDir(s.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing journals: %w", err)
	}
	ids := make([]string, 0, len(names))
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".json"); ok && ValidID(id) {
			ids = append(ids, id)
		}
	}
	return s.readAll(ids)
}

// ListOpen are the operations that have no outcome yet, oldest first. It reads the
// markers, so its cost does not grow with the history of the host.
func (s *Store) ListOpen() ([]Record, error) {
	ids, err := s.fs.ReadDir(s.openDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing open journals: %w", err)
	}
	records, err := s.readAll(ids)
	open := records[:0]
	for _, r := range records {
		if !r.Finished() {
			open = append(open, r)
		}
	}
	return open, err
}

func (s *Store) readAll(ids []string) ([]Record, error) {
	var records []Record
	var errs []error
	for _, id := range ids {
		r, err := s.Read(id)
		switch {
		case errors.Is(err, fs.ErrNotExist): // marker made, crash before the first record: nothing was begun
		case err != nil:
			errs = append(errs, err)
		default:
			records = append(records, r)
		}
	}
	sort.SliceStable(records, func(i, j int) bool { return records[i].StartTime.Before(records[j].StartTime) })
	return records, errors.Join(errs...)
}

// Sweep removes markers of operations that need no resume: a crash came between the
// last record and the removal, or before the first record. A marker whose record is
// damaged stays, so that every boot says so.
func (s *Store) Sweep() error {
	ids, err := s.fs.ReadDir(s.openDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing open journals: %w", err)
	}
	var errs []error
	for _, id := range ids {
		r, err := s.Read(id)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && r.Finished()) {
			errs = append(errs, s.removeMarker(id))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) removeMarker(id string) error {
	if err := s.fs.Remove(s.marker(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the marker of %s: %w", id, err)
	}
	return s.fs.SyncDir(s.openDir())
}

// write replaces the record of an operation.
func (s *Store) write(r Record) error {
	data, err := Encode(r)
	if err != nil {
		return err
	}
	id := r.Operation.ID
	if err := writeSync(s.fs, s.scratch(id), data, fileMode); err != nil {
		return fmt.Errorf("writing the journal of %s: %w", id, err)
	}
	if err := s.fs.Rename(s.scratch(id), s.Path(id)); err != nil {
		return fmt.Errorf("replacing the journal of %s: %w", id, err)
	}
	if err := s.fs.SyncDir(s.Dir()); err != nil {
		return fmt.Errorf("writing the journal of %s: %w", id, err)
	}
	return nil
}
