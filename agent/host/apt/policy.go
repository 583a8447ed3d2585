package apt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// Services are restarted by steps, in their order and under their grant, and by
// nothing else. Maintainer scripts reach services in two ways, and both are closed
// for the time of our transaction only:
//
//   - invoke-rc.d and deb-systemd-invoke ask /usr/sbin/policy-rc.d;
//   - a direct systemctl does nothing when SYSTEMD_OFFLINE is set.
//
// Crash window: our policy-rc.d may stay behind when power fails. It denies only when
// the variable below is set, which is the case in children of our transaction alone;
// for everybody else it answers what the host's own policy answers. So a leftover
// does no harm, and the next transaction clears it.
const (
	policyPath = "usr/sbin/policy-rc.d"
	policySave = "usr/sbin/policy-rc.d.refit-saved"
	policyVar  = "REFIT_PACKAGE_TRANSACTION"
)

const policyText = `#!/bin/sh
# Written by Refit for the time of one package transaction. It denies only what that
# transaction's own maintainer scripts ask for; anybody else gets the host's own policy.
[ "$` + policyVar + `" = 1 ] && exit 101
[ -x /` + policySave + ` ] && exec /` + policySave + ` "$@"
exit 0
`

// noRestarts closes both ways and returns the environment of the transaction and
// what opens them again. A transaction that only removes packages may stop their
// services: a daemon must not outlive its program.
func (a *Apt) noRestarts(changes []upgrade.PackageChange) (env []string, restore func() error, err error) {
	if len(changes) > 0 && onlyRemovals(changes) {
		return nil, func() error { return nil }, nil
	}
	if err := a.restorePolicy(); err != nil { // of a transaction that was cut off
		return nil, nil, err
	}
	if err := a.installPolicy(); err != nil {
		return nil, nil, errors.Join(err, a.restorePolicy())
	}
	return []string{policyVar + "=1", "SYSTEMD_OFFLINE=1"}, a.restorePolicy, nil
}

func onlyRemovals(changes []upgrade.PackageChange) bool {
	for _, c := range changes {
		if c.To != "" {
			return false
		}
	}
	return true
}

func (a *Apt) installPolicy() error {
	path, save := a.path(policyPath), a.path(policySave)
	if err := os.MkdirAll(a.path("usr/sbin"), 0o755); err != nil {
		return fmt.Errorf("making the directory of the service policy: %w", err)
	}
	// A link, not a rename: there is no moment without the host's own policy.
	if err := os.Link(path, save); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keeping the host's own service policy: %w", err)
	}
	return files.WriteAtomic(path, []byte(policyText), 0o755)
}

// restorePolicy puts the host's own policy back, or removes ours when there was none.
// Crash windows: with a saved file the saved file is the host's; without one, only
// our own text is removed.
func (a *Apt) restorePolicy() error {
	path, save := a.path(policyPath), a.path(policySave)
	err := os.Rename(save, path)
	if err == nil {
		// Renaming between two links of one file does nothing: cut off before ours was written, both are there.
		return files.Remove(save)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restoring the host's own service policy: %w", err)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the service policy: %w", err)
	}
	if string(text) != policyText {
		return nil
	}
	return files.Remove(path)
}
