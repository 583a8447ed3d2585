package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refit-dev/refit/agent/executor/journal"
	"github.com/refit-dev/refit/agent/host/files"
	"github.com/refit-dev/refit/pkg/upgrade"
)

// settledPath holds the id of the newest operation whose reboot the host was content with.
func (s *Store) settledPath() string { return filepath.Join(s.dir, "reboot-settled") }

// Rebooted are the reasons for which this host was rebooted since it last asked for no
// reboot, by its journals. A reboot that was followed by a failure counts as well: it happened.
func (s *Store) Rebooted() []string {
	reasons, _ := s.reboots()
	return reasons
}

// SettleReboot notes that the host asks for no reboot: whatever it asks for from now on is new.
func (s *Store) SettleReboot() error {
	reasons, newest := s.reboots()
	if len(reasons) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	return files.WriteAtomic(s.settledPath(), []byte(newest+"\n"), fileMode)
}

func (s *Store) reboots() (reasons []string, newest string) {
	records, _ := journal.NewStore(s.dir).List() // oldest first; what could not be read is left out
	settled, err := os.ReadFile(s.settledPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		settled = nil // then a reboot is rather left out
	}
	if at := slices.IndexFunc(records, func(r journal.Record) bool { return r.Operation.ID == strings.TrimSpace(string(settled)) }); at >= 0 {
		records = records[at+1:]
	}
	for _, r := range records {
		for i, step := range r.Operation.Plan.Steps {
			if step.Kind == upgrade.StepReboot && i < len(r.Steps) && r.Steps[i].State == journal.StepDone {
				reasons, newest = append(reasons, step.Reason), r.Operation.ID
			}
		}
	}
	return reasons, newest
}
