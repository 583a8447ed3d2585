package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// CorruptError says that a record cannot be trusted. Nothing is run from it.
type CorruptError struct {
	Path   string
	Detail string
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal %s cannot be trusted (%s): nothing is run from it; look at the host, then move the file away", e.Path, e.Detail)
}

// The checksum is over the bytes of the record as they are in the file, so that a
// reader which does not know all fields still checks all of them.
type envelope struct {
	FormatVersion int             `json:"formatVersion"`
	Checksum      string          `json:"checksum"`
	Record        json.RawMessage `json:"record"`
}

func checksum(record []byte) string {
	sum := sha256.Sum256(record)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Encode is the file content of a record.
func Encode(r Record) ([]byte, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of %s: %w", r.Operation.ID, err)
	}
	return envelope{FormatVersion: FormatVersion, Checksum: checksum(raw), Record: raw}.encode()
}

func (e envelope) encode() ([]byte, error) {
	out, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding a journal: %w", err)
	}
	return append(out, '\n'), nil
}

// Decode reads the content of a file; path is for the error.
func Decode(path string, data []byte) (Record, error) {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return Record{}, &CorruptError{path, "not a journal: " + err.Error()}
	}
	if e.FormatVersion != FormatVersion {
		return Record{}, &CorruptError{path, fmt.Sprintf("format version %d, this program knows %d", e.FormatVersion, FormatVersion)}
	}
	if got := checksum(e.Record); got != e.Checksum {
		return Record{}, &CorruptError{path, "checksum is " + got + ", recorded " + e.Checksum}
	}
	// The checksum is of the record. What is around it is to be as it was written, too: a
	// decoder forgives the case of a name, and whatever is beside the names that it knows.
	if written, err := e.encode(); err != nil || !bytes.Equal(written, data) {
		return Record{}, &CorruptError{path, "it is not as it was written"}
	}
	return DecodeRecord(path, e.Record)
}

// DecodeRecord reads a record whose bytes are known to be whole.
func DecodeRecord(path string, record []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(record, &r); err != nil {
		return Record{}, &CorruptError{path, "record does not decode: " + err.Error()}
	}
	return r, check(path, r)
}

// A record may be intact and still make no sense, such as one from a faulty writer.
func check(path string, r Record) error {
	switch {
	case r.Operation.ID == "":
		return &CorruptError{path, "no operation id"}
	case len(r.Steps) != len(r.Operation.Plan.Steps):
		return &CorruptError{path, fmt.Sprintf("%d step records for %d steps", len(r.Steps), len(r.Operation.Plan.Steps))}
	case r.State != Open && !r.Finished():
		return &CorruptError{path, fmt.Sprintf("unknown state %q", r.State)}
	}
	for i, s := range r.Steps {
		if want := r.Operation.Plan.Steps[i].Kind; s.Kind != want {
			return &CorruptError{path, fmt.Sprintf("step %d is %s in the plan and %s in the record", i, want, s.Kind)}
		}
	}
	for i, s := range r.Rollback {
		if s.Step == nil {
			return &CorruptError{path, fmt.Sprintf("rollback step %d has no step", i)}
		}
	}
	return nil
}
