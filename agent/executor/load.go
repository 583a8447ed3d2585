package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// OperationPath is where the agent leaves an accepted operation.
func OperationPath(stateDir, id string) string {
	return filepath.Join(stateDir, "operations", id+".json")
}

// LoadOperation reads an accepted operation. A field that this program does not know
// may be what makes the operation safe, so it is refused.
func LoadOperation(stateDir, id string) (upgrade.Operation, error) {
	var op upgrade.Operation
	if !journal.ValidID(id) {
		return op, fmt.Errorf("%q is not an operation id", id)
	}
	path := OperationPath(stateDir, id)
	data, err := os.ReadFile(path)
	if err != nil {
		return op, fmt.Errorf("reading operation %s: %w", id, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&op); err != nil {
		return op, fmt.Errorf("decoding %s: %w", path, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return op, fmt.Errorf("decoding %s: there is more in it than one operation", path)
	}
	if op.ID != id {
		return op, fmt.Errorf("%s is of operation %q", path, op.ID)
	}
	return op, nil
}
