package executor

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/files"
)

// keepEnded is how many ended operations stay on record, with their logs.
const keepEnded = 5

// prune keeps the disk use of years of operations bounded. It comes after the outcome,
// which nothing here can change: a fault is only said.
func (e *Executor) prune(ctx context.Context) {
	if err := e.store.Prune(keepEnded, e.forget); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Records of earlier operations stay")
	}
}

// forget removes the accepted operation and the output of its programs.
func (e *Executor) forget(id string) error {
	if !journal.ValidID(id) {
		return nil
	}
	// Durably: were the operation back after a power loss and its journal not, it would
	// look like one that has yet to begin.
	return errors.Join(files.Remove(OperationPath(e.StateDir, id)), files.Remove(filepath.Join(e.StateDir, "log", id+".log")))
}
