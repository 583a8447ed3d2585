package setup

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/refit-dev/refit/agent/health"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/outage"
	"github.com/refit-dev/refit/pkg/upgrade"
	"github.com/refit-dev/refit/pkg/version"
)

// wellness tells the executor how this agent is, which may just have been installed by it.
type wellness struct {
	log  logr.Logger
	path string

	mu   sync.Mutex
	said health.Report
}

// running begins with what is known at the start: which program this is.
func running(ctx context.Context, runDir, self string) *wellness {
	w := &wellness{log: logr.FromContextOrDiscard(ctx), path: filepath.Join(runDir, filepath.Base(health.File))}
	digest, _, err := files.Digest(self)
	if err != nil {
		w.log.Info("Cannot tell which program this is, so an upgrade of Refit by itself would be taken back", "reason", err.Error())
	}
	w.say(func(r *health.Report) { *r = health.Report{Program: digest, Version: version.Version} })
	return w
}

// say writes what has changed.
func (w *wellness) say(change func(*health.Report)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.said
	change(&w.said)
	if w.said == before {
		return
	}
	data, err := w.said.Encode()
	if err == nil {
		err = files.WriteAtomic(w.path, data, 0o600)
	}
	if err != nil {
		w.said = before
		w.log.Info("Cannot say how this agent is", "reason", err.Error())
	}
}

// heard takes in how the API server has answered. One that is away says nothing, and neither does a conflict.
func (w *wellness) heard(err error) {
	if err == nil {
		w.say(func(r *health.Report) { r.Reported, r.Refused = true, "" })
		return
	}
	var answer apierrors.APIStatus
	if _, away := outage.Describe(err); away || apierrors.IsConflict(err) || !errors.As(err, &answer) {
		return
	}
	w.say(func(r *health.Report) { r.Reported, r.Refused = false, err.Error() })
}

// tryExecutor asks the executor on disk what runs here, until it says so.
func (w *wellness) tryExecutor(ctx context.Context, facts func(ctx context.Context, packages []string) (upgrade.Facts, error), pause time.Duration) {
	for ctx.Err() == nil {
		_, err := facts(ctx, nil)
		if err == nil {
			w.say(func(r *health.Report) { r.ExecutorAnswers, r.ExecutorFault = true, "" })
			return
		}
		if ctx.Err() == nil {
			w.say(func(r *health.Report) { r.ExecutorFault = err.Error() })
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
