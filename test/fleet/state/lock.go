package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/refit-dev/refit/test/fleet/hosts"
)

// Lock keeps a second up or down of the same fleet out until unlock is called or the process ends.
func Lock(name string) (unlock func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	unlock, err = hosts.TryLock(filepath.Join(runDir, lockName(Dir(name))))
	if errors.Is(err, hosts.ErrLocked) {
		return nil, fmt.Errorf("fleet %s is being brought up or down already; wait for that to end: %w", name, err)
	}
	return unlock, err
}

// lockName tells fleets of one name in different state directories apart.
func lockName(dir string) string {
	return strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-") + ".lock"
}
