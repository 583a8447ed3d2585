package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

// Lock keeps a second up or down of the same fleet out until unlock is called or the process ends. The lock file goes with
// the fleet's directory.
func Lock(name string) (unlock func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	// A process that was just killed still holds its lock for an instant.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	unlock, err = hosts.Lock(ctx, filepath.Join(Dir(name), "lock"))
	if errors.Is(err, hosts.ErrLocked) {
		return nil, fmt.Errorf("fleet %s is being brought up or down already; wait for that to end: %w", name, err)
	}
	return unlock, err
}
