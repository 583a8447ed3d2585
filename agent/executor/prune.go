package executor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"

	"github.com/refit-dev/refit/agent/executor/journal"
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
	var errs []error
	for _, path := range []string{OperationPath(e.StateDir, id), filepath.Join(e.StateDir, "log", id+".log")} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
