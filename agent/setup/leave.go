package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/agent/binding"
	"github.com/refit-dev/refit/agent/host/install"
	"github.com/refit-dev/refit/agent/host/systemd"
	"github.com/refit-dev/refit/agent/store"
)

// Join binds this host to the place that a kubeconfig of `kubectl refit join-token` leads to.
func Join(config string, paths Paths, kubeconfig []byte) (binding.Place, error) {
	if err := asRoot(os.Geteuid(), "can bind this host to a cluster"); err != nil {
		return binding.Place{}, err
	}
	paths = paths.withDefaults()
	return binding.Host{Config: config, Etc: paths.Etc, State: paths.State}.Join(kubeconfig)
}

// Leaving is what goes from a host beside its binding.
type Leaving struct {
	// Executor and refit-resume.service, as a pod has installed them.
	Executor bool
	// Record of operations, with all that is kept to undo them.
	Record bool
}

// Leave unbinds this host.
func Leave(ctx context.Context, config string, paths Paths, leaving Leaving) (*binding.Place, error) {
	if err := asRoot(os.Geteuid(), "can take this host out of its cluster"); err != nil {
		return nil, err
	}
	paths = paths.withDefaults()
	if err := mayLeave(paths); err != nil {
		return nil, err
	}
	was, err := binding.Host{Config: config, Etc: paths.Etc, State: paths.State}.Leave()
	if err == nil && leaving.Executor {
		units := systemd.New()
		defer units.Close()
		err = install.Host{Units: units}.Remove(ctx)
	}
	if err == nil && leaving.Record {
		err = errors.Join(empty(paths.State), empty(paths.Run))
	}
	return was, err
}

// empty deletes all that is in a directory, and the directory where it is not mounted into a pod.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting what is in %s: %w", dir, err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("deleting what is in %s: %w", dir, err)
		}
	}
	_ = os.Remove(dir) // a mount stays, empty
	return nil
}

// mayLeave: what a host has accepted it finishes, and reports to whom it was accepted from.
func mayLeave(paths Paths) error {
	runs, err := agentRuns(paths)
	if err != nil {
		return err
	}
	if runs {
		return errors.New("an agent runs on this host: stop it first (systemctl stop refit-agent)")
	}
	records := store.New(paths.State)
	begun, err := records.Open()
	if err != nil {
		return fmt.Errorf("looking for open operations: %w", err)
	}
	accepted, err := records.Unbegun()
	if err != nil {
		return fmt.Errorf("looking for accepted operations: %w", err)
	}
	var open []string
	for _, r := range begun {
		open = append(open, r.Operation.ID)
	}
	for _, op := range accepted {
		open = append(open, op.ID)
	}
	if len(open) > 0 {
		return fmt.Errorf("operation %s has no outcome yet: let the host finish it first (refit-agent operations shows it)", strings.Join(open, ", "))
	}
	return nil
}
